//! `/problems`: a page for each kind of problem, each reason to stop or wait, and each alert, with meaning, cause and
//! fix. The texts come from `problems.md` in this folder.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use crate::http::answer::html;
use crate::http::front::App;
use crate::http::guard::headers::text;
use crate::http::problem::{HttpResult, Problem, Slug};

const TEXTS: &str = include_str!("problems.md");

/// Dashboard pages linked from problem pages: path, description, slugs.
const PLACES: [(&str, &str, &[&str]); 8] = [
    (
        "/nodes",
        "nodes and their free capacity",
        &[
            "no-capacity",
            "capacity",
            "waits-in-line",
            "too-big",
            "no-node",
            "draining",
            "node-silent",
            "store-unavailable",
            "overloaded",
            "archive-fails",
            "redis-lost",
            "coordinator-down",
            "internal",
        ],
    ),
    (
        "/tasks",
        "tasks",
        &[
            "wrong-state",
            "task-sealed",
            "operator",
            "business",
            "canary-done",
            "deadline",
            "start-at",
            "task-stalled",
            "rate-missed",
            "checkpoint-stale",
            "source-changed",
            "checkpoint-corrupt",
            "backlog-full",
            "reduce-failed",
        ],
    ),
    (
        "/tasks?status=recovering",
        "recovering tasks",
        &["recoveries-exhausted", "crash-loop", "dormant"],
    ),
    (
        "/tasks?status=stopped",
        "stopped tasks",
        &[
            "error-budget",
            "item-exhausted",
            "handler-gone",
            "handler-rejected",
            "handler-unreachable",
            "no-item-succeeds",
        ],
    ),
    (
        "/businesses",
        "businesses and the state of their handlers",
        &[
            "handler-down",
            "check-failed",
            "business-rejected",
            "upload-quota",
        ],
    ),
    ("/schedules", "schedules and their fires", &["schedule-fails"]),
    ("/log", "data log", &["data-log-dropping"]),
    (
        "/settings",
        "tokens and sessions",
        &["unauthenticated", "forbidden"],
    ),
];

/// Page about a problem, a reason or an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    slug: &'static str,
    title: &'static str,
    text: &'static str,
}

fn topics() -> impl Iterator<Item = Topic> {
    TEXTS.split("## ").filter_map(|part| {
        let (head, text) = part.split_once('\n')?;
        let (slug, title) = head.split_once(": ")?;
        Some(Topic { slug, title, text })
    })
}

/// Finds a page by slug. Status and stop reasons have underscores, slugs have dashes.
fn topic(slug: &str) -> Option<Topic> {
    let slug = slug.replace('_', "-");
    topics().find(|topic| topic.slug == slug)
}

/// Returns the dashboard page about a topic, `None` if there isn't any.
fn place_of(slug: &str) -> Option<(&'static str, &'static str)> {
    let place = PLACES.iter().find(|(.., slugs)| slugs.contains(&slug));
    place.map(|(path, what, _)| (*path, *what))
}

/// List all kinds of problems
#[utoipa::path(
    get, path = "/problems", tag = "node", operation_id = "problems", security(()),
    responses(
        (status = 200, description = "A list with links, as HTML or Markdown", content((String = "text/html"), (String = "text/markdown"))),
    )
)]
pub(crate) async fn list(headers: HeaderMap) -> Response {
    if wants_markdown(&headers) {
        let lines: Vec<String> = topics()
            .map(|topic| format!("- [{}](/problems/{})", topic.title, topic.slug))
            .collect();
        return markdown(format!("# Problems\n\n{}\n", lines.join("\n")));
    }
    let line = |topic: Topic| {
        format!(
            "<li><a href=\"/problems/{}\">{}</a></li>\n",
            topic.slug,
            html::escaped(topic.title)
        )
    };
    let lines: String = topics().map(line).collect();
    html::page("Problems", &format!("<h1>Problems</h1>\n<ul>\n{lines}</ul>"))
}

/// Explain a problem: meaning, cause and fix
#[utoipa::path(
    get, path = "/problems/{slug}", tag = "node", operation_id = "problem", security(()),
    params(("slug" = String, Path, description = "Last part of a problem's `type`, or the reason why a task stopped or waits", max_length = 64)),
    responses(
        (status = 200, description = "The page, as HTML or Markdown", content((String = "text/html"), (String = "text/markdown"))),
    )
)]
pub(crate) async fn show(State(app): State<App>, Path(slug): Path<String>, headers: HeaderMap) -> HttpResult {
    let missing = || {
        Problem::new(
            Slug::NotFound,
            "no page about this problem; see `/problems` for a list",
        )
    };
    let topic = topic(&slug).ok_or_else(missing)?;
    let place = place_of(topic.slug).filter(|_| app.service.config().dashboard.enabled);
    if wants_markdown(&headers) {
        let text = topic.text.trim_end().replace("\n**", "\n\n**");
        let place = place.map(|(path, what)| format!("\n**Where to look.** [{what}]({path})\n"));
        let text = format!("{text}\n{}", place.unwrap_or_default());
        let text = text.trim_end();
        return Ok(markdown(format!("# {}\n\n{text}\n", topic.title)));
    }
    let mut facts = Slug::ALL.iter().map(|slug| slug.facts());
    let status = facts.find(|(name, ..)| *name == topic.slug);
    let status = status.map(|(_, status, ..)| format!("<p class=\"d\">HTTP {}</p>\n", status.as_u16()));
    let place = place.map(|(path, what)| {
        format!("<p><strong>Where to look.</strong> <a href=\"{path}\">{what}</a></p>\n")
    });
    let body = format!(
        "<h1>{}</h1>\n<p><code>{}</code></p>\n{}{}{}",
        html::escaped(topic.title),
        topic.slug,
        status.unwrap_or_default(),
        html::rendered(topic.text),
        place.unwrap_or_default()
    );
    Ok(html::page(topic.title, &body))
}

/// Returns true if the client asks for Markdown; everybody else gets HTML.
fn wants_markdown(headers: &HeaderMap) -> bool {
    let accepted = text(headers, header::ACCEPT);
    let mut kinds = accepted.split(',').filter_map(|kind| kind.split(';').next());
    kinds.any(|kind| kind.trim() == "text/markdown") && !accepted.contains("text/html")
}

fn markdown(text: String) -> Response {
    ([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use windrow_core::task::lifecycle::StopReason;

    #[test]
    fn each_problem_each_stop_and_each_wait_has_a_page_with_three_parts() {
        let problems = Slug::ALL.iter().map(|slug| slug.facts().0);
        let stops = StopReason::ALL.iter().map(|reason| reason.as_str());
        let waits = [
            "capacity",
            "waits_in_line",
            "too_big",
            "no_node",
            "start_at",
            "dormant",
            "coordinator_down",
        ];
        for slug in problems.chain(stops).chain(waits) {
            let topic = topic(slug).unwrap_or_else(|| panic!("no page of {slug}"));
            for part in ["**What.** ", "**Why.** ", "**How to fix.**\n- "] {
                assert!(topic.text.contains(part), "{slug} lacks {part:?}");
            }
        }
        let slugs: Vec<&str> = topics().map(|topic| topic.slug).collect();
        assert_eq!(
            slugs.iter().collect::<BTreeSet<_>>().len(),
            slugs.len(),
            "each once"
        );
        assert_eq!(
            TEXTS.matches("## ").count(),
            slugs.len(),
            "every heading was read"
        );
    }

    #[test]
    fn what_the_dashboard_shows_is_linked_once() {
        let mut linked = BTreeSet::new();
        for slug in PLACES.iter().flat_map(|(.., slugs)| *slugs) {
            assert!(topic(slug).is_some(), "no page of {slug}");
            assert!(linked.insert(slug), "{slug} has two places");
        }
        assert_eq!(place_of("no-capacity").map(|(path, _)| path), Some("/nodes"));
    }

    #[test]
    fn every_link_to_the_dashboard_is_a_page_of_it() {
        let alerts = include_str!("../../../../deploy/alerts.yml");
        let of_alerts = alerts.lines().filter_map(|line| {
            let (_, path) = line.split_once("dashboard_url: \"http://{{ $labels.instance }}")?;
            Some(path.trim_end_matches('"'))
        });
        let of_alerts: Vec<&str> = of_alerts.collect();
        assert_eq!(of_alerts.len(), alerts.matches("- alert: ").count());
        for path in PLACES.iter().map(|(path, ..)| *path).chain(of_alerts) {
            assert!(crate::http::dashboard::is_page(path), "{path}");
        }
    }

    #[test]
    fn every_alert_has_a_page() {
        let alerts = include_str!("../../../../deploy/alerts.yml");
        let slugs: Vec<&str> = alerts
            .split("/problems/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert_eq!(slugs.len(), alerts.matches("- alert: ").count());
        for slug in slugs {
            assert!(topic(slug).is_some(), "no page of {slug}");
        }
    }

    #[test]
    fn the_page_has_the_title_of_its_problem() {
        for slug in Slug::ALL {
            let (name, _, title, _) = slug.facts();
            assert_eq!(topic(name).map(|topic| topic.title), Some(title));
        }
    }
}
