//! Endpoint for requests between nodes, which isn't part of the API. A caller that can't prove to be a node of this
//! store gets a 404.

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use uuid::Uuid;

use crate::http::front::App;
use crate::http::nodes;
use crate::http::nodes::actors;
use crate::http::problem::{Problem, Slug};
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{SessionId, WallMs};
use windrow_engine::ports::ownership::peers::{
    NodeChangeRequest, PATH, PeerReply, QUESTION_BYTES_MAX, Question, Seal,
};
use windrow_engine::ports::tasks::store::{Actor, Write};

/// Returns the router with the peer endpoint.
pub(crate) fn router() -> Router<App> {
    Router::new().route(PATH, any(ask))
}

async fn ask(State(app): State<App>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let nowhere =
        || Problem::new(Slug::NotFound, format!("no such path: {}", head.uri.path())).into_response();
    let seal =
        seal(&head.headers).filter(|_| head.method == Method::POST && app.service.cluster.parts.is_shared);
    let Some(seal) = seal else { return nowhere() };
    let Some(body) = read(body).await else {
        return nowhere();
    };
    if let Err(why) = app
        .service
        .cluster
        .parts
        .seal
        .check(&seal, &body, app.service.now())
    {
        tracing::debug!(from = seal.from, %why, "rejected request between nodes");
        return nowhere();
    }
    match app.service.cluster.is_own_session(seal.to).await {
        Ok(true) => {}
        Ok(false) => return nowhere(),
        Err(error) => return Problem::from(ServiceError::from(error)).into_response(),
    }
    // From here on, the caller is known to be a node.
    let Ok(question) = serde_json::from_slice::<Question>(&body) else {
        return Problem::new(Slug::InvalidRequest, "the request is from another version").into_response();
    };
    answered(&app, &seal, &answer(&app, &question).await)
}

async fn read(body: Body) -> Option<Bytes> {
    to_bytes(body, QUESTION_BYTES_MAX).await.ok()
}

fn seal(headers: &HeaderMap) -> Option<Seal> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    Some(Seal {
        to: SessionId(text("windrow-peer-to")?.parse::<Uuid>().ok()?),
        from: text("windrow-peer-from")?,
        at: WallMs(text("windrow-peer-time")?.parse().ok()?),
        nonce: text("windrow-peer-nonce")?,
        proof: text("windrow-peer-proof")?,
    })
}

fn answered(app: &App, seal: &Seal, answer: &PeerReply) -> Response {
    match serde_json::to_vec(answer) {
        Ok(body) => {
            let proof = app.service.cluster.parts.seal.prove(&seal.nonce, &body);
            let headers = [
                ("windrow-peer-proof", proof.as_str()),
                (header::CONTENT_TYPE.as_str(), "application/json"),
            ];
            (StatusCode::OK, headers, body).into_response()
        }
        Err(error) => Problem::from(ServiceError::Internal(error.to_string())).into_response(),
    }
}

async fn answer(app: &App, question: &Question) -> PeerReply {
    match question {
        Question::Node => PeerReply::Node(Box::new(nodes::face(app).await)),
        Question::Actors(wanted) => actors::written(app, wanted),
        Question::Change(wish) => change(app, wish).await,
        others => {
            let answer = app.service.answer(others).await;
            answer.unwrap_or_else(|| PeerReply::Failed("this node can't answer that".to_owned()))
        }
    }
}

/// Applies a change that was requested through another node; the audit log names the person who requested it.
async fn change(app: &App, wish: &NodeChangeRequest) -> PeerReply {
    if app.front.is_ending() {
        return PeerReply::Failed(ServiceError::Draining.to_string());
    }
    let source = ["cli", "ui"]
        .into_iter()
        .find(|known| *known == wish.source)
        .unwrap_or("api");
    let actor = Actor {
        name: wish.actor.clone(),
        role: wish.role.clone(),
        source,
        reason: wish.reason.clone(),
        request_id: wish.request_id.clone(),
    };
    let write = Write {
        actor,
        dry_run: wish.is_trial,
    };
    match nodes::apply(app, wish.capacity_rate, wish.log_filter.as_deref(), &write).await {
        Ok(would) => {
            let mut face = nodes::face(app).await;
            super::body::overlay(&would, &mut face);
            PeerReply::Node(Box::new(face))
        }
        Err(ServiceError::Unprocessable(faults) | ServiceError::Invalid(faults)) => {
            let fault = |fault: FieldFault| (fault.pointer, fault.detail, fault.advice);
            PeerReply::Refused(faults.into_iter().map(fault).collect())
        }
        Err(error) => PeerReply::Failed(error.to_string()),
    }
}
