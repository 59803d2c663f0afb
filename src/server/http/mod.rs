//! The API server: HTTP in front of the [`Service`](crate::service::Service). Translates and makes no decisions.
//!
//! Each resource is one file with its routes, bodies and conversions. A route is registered together with its OpenAPI
//! description, from which [`guard::access`] reads the allowed callers: a route that doesn't state them can't be
//! called by anybody.

mod alerts;
pub mod answer;
mod audit;
mod businesses;
pub mod dashboard;
mod datasets;
pub mod document;
mod events;
pub mod front;
pub mod guard;
pub mod jobs;
mod limits;
mod logs;
pub mod metrics;
mod nodes;
mod paths;
pub mod problem;
pub mod schedules;
pub mod server;
pub mod starting;
mod statistics;
mod tasks;
mod tokens;
mod uploads;

use std::sync::Arc;

use axum::Extension;
pub use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

pub use self::front::{App, Front};
use self::problem::{Problem, Slug};
use crate::http::guard::access::Scheme;
use crate::service::ServiceError;

#[derive(OpenApi)]
#[openapi(
    info(title = "Windrow", description = "Calls a handler once for each numbered item of a task, at exactly the rate you set."),
    modifiers(&Scheme),
    components(schemas(api::DryRun, api::Problem, api::TaskAttributes, api::TaskSettings)),
    tags(
        (name = "tasks", description = "A task calls the handler of a business once for each of its items"),
        (name = "businesses", description = "Businesses and their handlers"),
        (name = "schedules", description = "Schedules that create recurring tasks"),
        (name = "alerts", description = "Notices of events that may need a person"),
        (name = "limits", description = "Limits shared by several businesses and tasks"),
        (name = "datasets", description = "Published results of finished tasks, for readers"),
        (name = "statistics", description = "Daily totals, kept for years"),
        (name = "access", description = "Tokens and roles"),
        (name = "node", description = "Nodes, the cluster, metrics and events"),
    )
)]
struct Description;

/// Returns the routes below `/v1/tasks`, and the log.
fn task_paths() -> Vec<UtoipaMethodRouter<App>> {
    vec![
        routes!(tasks::list, tasks::changes::create),
        routes!(tasks::counts),
        routes!(tasks::read, tasks::changes::edit, tasks::changes::delete),
        routes!(tasks::changes::clone),
        routes!(tasks::commands::start),
        routes!(tasks::commands::stop),
        routes!(tasks::commands::cancel),
        routes!(tasks::commands::finish),
        routes!(tasks::items::append),
        routes!(tasks::items::seal),
        routes!(tasks::commands::recover),
        routes!(tasks::commands::relocate),
        routes!(tasks::commands::ready),
        routes!(tasks::failures::fail::fail),
        routes!(tasks::skips::skip),
        routes!(tasks::view::history::runs),
        routes!(tasks::view::history::run),
        routes!(tasks::view::history::revisions),
        routes!(tasks::view::stats::stats),
        routes!(tasks::explain::explain),
        routes!(tasks::view::window::window),
        routes!(tasks::preview::preview),
        routes!(tasks::failures::redrives::redrive),
        routes!(tasks::failures::redrives::replay),
        routes!(answer::export::failures),
        routes!(answer::export::log),
        routes!(tasks::results::results),
        routes!(tasks::failures::list),
        routes!(tasks::failures::groups),
        routes!(tasks::failures::item::item),
        routes!(logs::of_task, logs::append),
        routes!(logs::of_all),
        routes!(tasks::failures::report::report),
    ]
}

/// Returns the routes below `/v1/businesses`.
fn business_paths() -> Vec<UtoipaMethodRouter<App>> {
    vec![
        routes!(businesses::register, businesses::list),
        routes!(businesses::read, businesses::edit),
        routes!(businesses::check),
        routes!(businesses::tries::once),
        routes!(businesses::archive),
        routes!(businesses::unarchive),
        routes!(businesses::rotate_secret),
        routes!(businesses::revisions),
    ]
}

/// Returns the routes of all other resources.
fn other_paths() -> Vec<UtoipaMethodRouter<App>> {
    vec![
        routes!(tokens::whoami::whoami),
        routes!(tokens::session::sign_in, tokens::session::sign_out),
        routes!(tokens::sessions::list),
        routes!(tokens::sessions::end),
        routes!(audit::audit),
        routes!(events::events),
        routes!(statistics::statistics),
        routes!(nodes::cluster::cluster),
        routes!(tasks::view::stats::of_all),
        routes!(nodes::list),
        routes!(nodes::show, nodes::change),
        routes!(nodes::drain),
        routes!(nodes::undrain),
        routes!(nodes::actors::local),
        routes!(nodes::actors::of_node),
        routes!(metrics::scrape),
        routes!(schedules::create, schedules::list),
        routes!(schedules::read, schedules::edit, schedules::delete),
        routes!(schedules::pause),
        routes!(schedules::resume),
        routes!(schedules::fires::trigger),
        routes!(schedules::fires::backfill),
        routes!(schedules::fires::skip),
        routes!(schedules::fires::fires),
        routes!(schedules::fires::next),
        routes!(alerts::create, alerts::list),
        routes!(alerts::read, alerts::edit, alerts::delete),
        routes!(alerts::test),
        routes!(alerts::deliveries),
        routes!(limits::create, limits::list),
        routes!(limits::read, limits::edit, limits::delete),
        routes!(tokens::create, tokens::list),
        routes!(tokens::revoke),
        routes!(guard::outside::healthz),
        routes!(guard::outside::readyz),
        routes!(guard::outside::version),
        routes!(guard::outside::openapi),
        routes!(document::page::docs),
        routes!(dashboard::front),
        routes!(document::page::index),
        routes!(problem::pages::list),
        routes!(problem::pages::show),
        routes!(uploads::create),
        routes!(uploads::show, uploads::discard),
    ]
}

/// Returns the routes below `/v1/datasets`.
fn dataset_paths() -> Vec<UtoipaMethodRouter<App>> {
    vec![
        routes!(datasets::create, datasets::list),
        routes!(datasets::read, datasets::edit, datasets::delete),
        routes!(datasets::current),
        routes!(datasets::roll_back),
        routes!(datasets::generations),
        routes!(datasets::generation),
        routes!(datasets::rows::results),
        routes!(datasets::rows::item),
        routes!(datasets::rows::keys),
        routes!(datasets::pin),
        routes!(datasets::unpin),
    ]
}

/// Builds the router of all routes with their descriptions.
fn routes() -> OpenApiRouter<App> {
    let begin = OpenApiRouter::with_openapi(Description::openapi());
    let paths = [task_paths(), business_paths(), dataset_paths(), other_paths()]
        .into_iter()
        .flatten();
    paths.fold(begin, OpenApiRouter::routes)
}

/// Returns the OpenAPI document as `/openapi.json` serves it.
pub fn description() -> Bytes {
    let (_, mut document) = routes().split_for_parts();
    guard::idempotency::describe(&mut document);
    document::finish(&mut document).0.json
}

/// Builds the API server: the router, and the OpenAPI document that describes it.
pub fn facade(app: App) -> (Router, Arc<Document>) {
    let (router, mut document) = routes().split_for_parts();
    guard::idempotency::describe(&mut document);
    let (written, rules) = document::finish(&mut document);
    let (document, rules) = (Arc::new(document), Arc::new(rules));
    let policy = Arc::new(guard::access::Policy::of(
        &document,
        guard::visitor::Names::of(&app.service.config().http),
    ));
    let router = router
        .layer(Extension(Arc::new(written)))
        // Body sizes are limited by `intake` and by the upload route.
        .layer(DefaultBodyLimit::disable())
        .fallback(dashboard::other)
        .method_not_allowed_fallback(problem::no_such_method)
        .route_layer(from_fn_with_state(app.clone(), guard::idempotency::remember))
        .route_layer(from_fn_with_state(
            (app.clone(), rules.clone()),
            guard::intake::take_in,
        ))
        .route_layer(from_fn_with_state(rules, guard::parameters::hold))
        .route_layer(from_fn_with_state((app.clone(), policy), guard::access::guard))
        .layer(from_fn_with_state(app.clone(), turn_away))
        // After the other layers: peers have no token, and must get replies during shutdown too.
        .merge(nodes::internal::router())
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(
            problem::on_panic,
        ))
        .layer(from_fn_with_state(app.clone(), answer::response::complete))
        .layer(from_fn_with_state(app.clone(), metrics::measure))
        .with_state(app);
    (router, document)
}

/// Rejects requests before any other check: changes during shutdown, and requests on surplus connections.
async fn turn_away(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_read && app.front.is_ending() {
        return Problem::from(ServiceError::Draining).into_response();
    }
    if request.extensions().get::<server::Crowded>().is_some() {
        let text = "too many connections, in total or from your address (http.max_connections)";
        return Problem::new(Slug::Overloaded, text).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::guard::{access, idempotency};

    /// The document as it is before its texts are bounded.
    pub(crate) fn document() -> serde_json::Value {
        let (_, mut document) = routes().split_for_parts();
        idempotency::describe(&mut document);
        document::finish(&mut document);
        serde_json::to_value(document).expect("it is JSON")
    }

    #[test]
    fn every_operation_states_who_may_call_it() {
        let (_, document) = routes().split_for_parts();
        let mut count = 0;
        for (path, item) in &document.paths.paths {
            for (method, operation) in access::operations(item) {
                count += 1;
                let nobody = access::Access::Roles(Vec::new());
                assert_ne!(
                    access::access_of(operation),
                    nobody,
                    "{method} {path} states nobody"
                );
            }
        }
        assert!(count >= 8, "operations are found: {count}");
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_every_answer_is_described() {
        let (_, mut document) = routes().split_for_parts();
        idempotency::describe(&mut document);
        document::finish(&mut document);
        let mut names = std::collections::BTreeSet::new();
        for (path, item) in &document.paths.paths {
            for (method, operation) in access::operations(item) {
                let name = operation.operation_id.clone().unwrap_or_default();
                assert!(
                    !name.is_empty() && names.insert(name),
                    "{method} {path} shares its name"
                );
                let answers = serde_json::to_value(&operation.responses).expect("it is JSON");
                for (status, answer) in answers.as_object().expect("answers by status") {
                    let said = answer["description"].as_str().unwrap_or_default();
                    assert!(
                        !said.trim().is_empty(),
                        "{method} {path} {status} isn't described"
                    );
                }
            }
        }
        assert!(names.len() > 50, "operations are found: {}", names.len());
    }

    #[test]
    fn each_schema_has_a_name_of_its_own_and_every_reference_a_schema() {
        let mut seen = std::collections::BTreeMap::new();
        for (name, schema) in task_paths()
            .into_iter()
            .chain(business_paths())
            .chain(dataset_paths())
            .chain(other_paths())
            .flat_map(|(schemas, ..)| schemas)
        {
            // Of two of one name the document would keep one.
            let schema = serde_json::to_value(schema).expect("it is JSON");
            let known = seen.entry(name.clone()).or_insert_with(|| schema.clone());
            assert_eq!(*known, schema, "two schemas have the name {name}");
        }
        for name in ["Problem", "ProblemField", "DryRun"] {
            seen.entry(name.to_owned()).or_default();
        }
        assert!(seen.len() > 20, "schemas are found: {}", seen.len());
        let (_, document) = routes().split_for_parts();
        let text = serde_json::to_string(&document).expect("it is JSON");
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(seen.contains_key(name), "{name} is no schema");
        }
    }

    #[test]
    fn every_pattern_of_the_document_can_be_read() {
        let (_, mut document) = routes().split_for_parts();
        idempotency::describe(&mut document);
        document::finish(&mut document);
    }

    #[test]
    fn nothing_is_public_but_what_must_be() {
        let (_, document) = routes().split_for_parts();
        let public: Vec<&str> = document
            .paths
            .paths
            .iter()
            .filter(|(_, item)| {
                access::operations(item)
                    .iter()
                    .any(|(_, one)| access::access_of(one) == access::Access::Public)
            })
            .map(|(path, _)| path.as_str())
            .collect();
        let known = [
            "/",
            "/docs",
            "/healthz",
            "/openapi.json",
            "/problems",
            "/problems/{slug}",
            "/readyz",
            "/v1",
            "/v1/session",
            "/version",
        ];
        assert_eq!(public, known);
    }
}
