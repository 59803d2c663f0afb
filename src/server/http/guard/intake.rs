//! Reader for the bodies of all requests but uploads: read once, as a whole, within the memory limits of the node and
//! of the caller.
//!
//! Bodies that are too large, or that don't fit into memory right now, are rejected before they are read. A body
//! counts for as long as it is read or worked on, even if its client leaves.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use crate::http::answer::held::Held;
use crate::http::front::App;
use crate::http::guard::body::worked;
use crate::http::guard::caller::Caller;
use crate::http::guard::measure::Measure;
use crate::http::guard::parameters::Rules;
use crate::http::guard::shares::{Full, Share, Shares};
use crate::http::guard::{bounds, headers};
use crate::http::paths::UPLOADS;
use crate::http::problem::{HttpResult, Problem, Slug};
use crate::service::ServiceError;

/// Amount reserved at a time for a body of unknown length, in bytes.
const STEP: u64 = 64 << 10;

/// Reads the body of a request that may change something, then runs the request to its end.
pub(crate) async fn take_in(
    State((app, rules)): State<(App, Arc<Rules>)>,
    path: MatchedPath,
    caller: Option<Extension<Caller>>,
    request: Request,
    next: Next,
) -> HttpResult {
    if request.method().is_safe() || path.as_str().starts_with(UPLOADS) {
        return Ok(next.run(request).await);
    }
    let account = caller.map(|caller| caller.account()).unwrap_or_default();
    let measure = Measure::of(path.as_str(), &app.service.config());
    let (parts, body) = request.into_parts();
    let length = headers::text(&parts.headers, header::CONTENT_LENGTH).parse().ok();
    let (bytes, share) = read(&app.front.bodies, account, measure, length, body).await?;
    let kind = headers::content_type(&parts.headers);
    if kind.is_empty() || bounds::is_json(&kind) {
        hold(
            rules,
            path.as_str().to_owned(),
            parts.method.clone(),
            bytes.clone(),
        )
        .await?;
    }
    let request = Request::from_parts(parts, Body::from(bytes.clone()));
    let work = async move {
        let mut response = next.run(request).await;
        // The memory stays counted until the work is done and the response is sent.
        response.extensions_mut().insert(Held::new(share));
        drop(bytes);
        response
    };
    Ok(to_the_end(work).await)
}

/// Checks a body against the documented size limits before anything else.
async fn hold(rules: Arc<Rules>, path: String, method: Method, bytes: Bytes) -> Result<(), ServiceError> {
    worked(bytes, move |bytes| {
        let shape = rules.body(&path, &method);
        shape.map_or(Ok(()), |shape| shape.check(bytes))
    })
    .await?
}

/// Body with its memory share, released when the last clone is dropped.
struct CountedBody {
    bytes: Vec<u8>,
    _share: Arc<Share<String>>,
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn read(
    memory: &Arc<Shares<String>>,
    who: String,
    Measure { most, weight }: Measure,
    length: Option<u64>,
    body: Body,
) -> Result<(Bytes, Arc<Share<String>>), Problem> {
    let full = |full: Full| full.problem("memory for bodies (http.body_memory)");
    let too_large = || too_large(length, most);
    if length.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut room = length.unwrap_or(0);
    let mut share = memory
        .take(who, room.saturating_mul(weight), false)
        .map_err(full)?;
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| {
            tracing::debug!(%error, "body broke off");
            Problem::new(Slug::InvalidRequest, "the body ended early")
        })?;
        let arrived = (bytes.len() + chunk.len()) as u64;
        if arrived > most {
            return Err(too_large());
        }
        if arrived > room {
            let step = STEP.max(arrived - room);
            share.more(step.saturating_mul(weight)).map_err(full)?;
            room += step;
        }
        bytes.extend_from_slice(&chunk);
    }
    let share = Arc::new(share);
    let counted = CountedBody {
        bytes,
        _share: share.clone(),
    };
    Ok((Bytes::from_owner(counted), share))
}

fn too_large(length: Option<u64>, most: u64) -> Problem {
    let has = length.map_or_else(|| "too many bytes".to_owned(), |length| format!("{length} bytes"));
    let text = format!(
        "the body has {has}; this route accepts {most} (http.body_limit, or less for requests without items)"
    );
    Problem::new(Slug::PayloadTooLarge, text)
}

/// Runs a request to its end even if the client disconnects: a completed change is then recorded, and none is left
/// half done (a booked rate is stored or returned).
async fn to_the_end(work: impl Future<Output = Response> + Send + 'static) -> Response {
    match tokio::spawn(work).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Problem::from(ServiceError::Draining).into_response(),
        },
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::http::guard::measure::AROUND_PARAMS;
    use windrow_config::Config;

    const PLAIN: Measure = Measure { most: 100, weight: 1 };

    fn body(pieces: &[&'static str]) -> Body {
        let pieces: Vec<Result<&'static str, std::io::Error>> =
            pieces.iter().map(|piece| Ok(*piece)).collect();
        Body::from_stream(stream::iter(pieces))
    }

    /// Fails the test when somebody asks for a part of it.
    fn unread() -> Body {
        Body::from_stream(stream::poll_fn(
            |_| -> std::task::Poll<Option<Result<Bytes, std::io::Error>>> { panic!("it is read") },
        ))
    }

    fn slug<T: std::fmt::Debug>(refused: Result<T, Problem>) -> String {
        refused.expect_err("refused").body.kind
    }

    #[tokio::test]
    async fn what_says_that_it_is_too_much_is_not_read() {
        let memory = Shares::new(150, 100);
        let ann = || "ann".to_owned();
        let large = read(&memory, ann(), PLAIN, Some(101), unread()).await;
        assert_eq!(slug(large), "/problems/payload-too-large");
        let held = memory.take(ann(), 60, false).expect("free");
        let share = read(&memory, ann(), PLAIN, Some(41), unread()).await;
        assert_eq!(slug(share), "/problems/too-many-requests");
        let others = memory.take("bob".to_owned(), 60, false).expect("free");
        assert_eq!(
            slug(read(&memory, ann(), PLAIN, Some(31), unread()).await),
            "/problems/overloaded"
        );
        drop((held, others));
        let heavy = Measure {
            most: 100,
            weight: 16,
        };
        assert_eq!(
            slug(read(&memory, ann(), heavy, Some(7), unread()).await),
            "/problems/too-many-requests"
        );
    }

    #[tokio::test]
    async fn a_body_counts_until_the_last_of_it_is_dropped() {
        let memory = Shares::new(100, 100);
        let (bytes, _) = read(&memory, String::new(), PLAIN, Some(6), body(&["abc", "def"]))
            .await
            .expect("read");
        let again = bytes.clone();
        drop(bytes);
        assert_eq!((&again[..], memory.taken()), (&b"abcdef"[..], 6));
        drop(again);
        assert_eq!(memory.taken(), 0);
    }

    #[tokio::test]
    async fn a_body_without_a_length_takes_as_it_comes_and_gives_all_back_when_it_is_too_much() {
        let memory = Shares::new(2 * STEP, 2 * STEP);
        let measure = Measure {
            most: 3 * STEP,
            weight: 1,
        };
        let piece: &'static str = "x".repeat(STEP as usize).leak();
        let (two, share) = read(&memory, String::new(), measure, None, body(&[piece, piece]))
            .await
            .expect("it fits");
        assert_eq!((two.len() as u64, memory.taken()), (2 * STEP, 2 * STEP));
        drop((two, share));
        let three = read(&memory, String::new(), measure, None, body(&[piece; 3])).await;
        assert_eq!(slug(three), "/problems/too-many-requests");
        let four = read(
            &Shares::new(u64::MAX, u64::MAX),
            String::new(),
            measure,
            None,
            body(&[piece; 4]),
        )
        .await;
        assert_eq!(slug(four), "/problems/payload-too-large");
        assert_eq!(memory.taken(), 0);
    }

    #[test]
    fn only_what_brings_items_may_be_large() {
        let mut config = Config::default();
        assert_eq!(
            Measure::of("/v1/tasks", &config),
            Measure {
                most: 16 << 20,
                weight: 1
            }
        );
        assert_eq!(
            Measure::of("/v1/tasks/{task}/logs", &config),
            Measure {
                most: 1 << 20,
                weight: 16
            }
        );
        config.task_defaults.max_params = windrow_core::settings::text::ByteSize(2 << 20);
        assert_eq!(
            Measure::of("/v1/tasks/{task}/clone", &config).most,
            (2 << 20) + AROUND_PARAMS
        );
    }
}
