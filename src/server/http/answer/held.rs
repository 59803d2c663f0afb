//! Responses that wait to be read: each counts against its caller's memory limit, as request bodies do, until its
//! last byte is written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::http::guard::Caller;
use crate::http::guard::shares::{Share, Shares};
use crate::http::problem::Problem;

/// Smallest response that is counted, in bytes: below it, the connection itself costs more.
const COUNTED_FROM: u64 = 4 << 10;
/// Largest piece handed to a connection at a time, in bytes. A connection may copy it, and only what it doesn't have
/// yet is counted.
const PIECE: usize = 16 << 10;

/// Memory share of a request, kept by its response: the response to a change is about as large as the request and can
/// no longer be refused.
#[derive(Clone, Debug)]
pub(crate) struct Held(Arc<Share<String>>);

impl Held {
    pub(crate) fn new(share: Arc<Share<String>>) -> Held {
        Held(share)
    }
}

/// Caller that a response's memory is charged to.
#[derive(Clone, Debug)]
pub(crate) struct Account(pub(crate) String);

/// Runs a request and charges its response to the caller.
pub(crate) async fn run_for(caller: Caller, mut request: Request, next: Next) -> Response {
    let account = Account(caller.account());
    request.extensions_mut().insert(caller);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(account);
    response
}

/// Counts the response until it is written. `can_refuse` means nothing was changed, so a refusal may replace the
/// response.
///
/// # Errors
/// If the caller's unread responses already use all the memory they may.
pub(crate) async fn counted(
    memory: &Arc<Shares<String>>,
    can_refuse: bool,
    mut response: Response,
) -> Result<Response, Problem> {
    let Some(length) = response
        .body()
        .size_hint()
        .exact()
        .filter(|length| *length >= COUNTED_FROM)
    else {
        return Ok(response);
    };
    let held = response.extensions_mut().remove::<Held>().map(|held| held.0);
    let account = response.extensions_mut().remove::<Account>();
    let taken = match held {
        Some(share) => Ok(share),
        None => {
            let account = account.map(|account| account.0).unwrap_or_default();
            memory.take(account, length, false).map(Arc::new)
        }
    };
    let share = match taken {
        Ok(share) => Some(share),
        Err(full) if can_refuse => {
            return Err(full.problem("memory for responses (http.body_memory)"));
        }
        Err(_) => None,
    };
    let (parts, body) = response.into_parts();
    // Cheap: the length is known, so the body is already in memory.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Ok(Response::from_parts(parts, Body::empty()));
    };
    let bytes = Bytes::from_owner(Counted { bytes, _share: share });
    Ok(Response::from_parts(parts, Body::new(Pieces(bytes))))
}

struct Counted {
    bytes: Bytes,
    _share: Option<Arc<Share<String>>>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Body of known length, sent in pieces of at most [`PIECE`] bytes.
struct Pieces(Bytes);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        let most = self.0.len().min(PIECE);
        let piece = self.0.split_to(most);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use futures_util::StreamExt;

    use super::*;

    fn answer(account: &str) -> Response {
        let mut response = Response::new(Body::from(vec![b'x'; 3 * PIECE]));
        response.extensions_mut().insert(Account(account.to_owned()));
        response
    }

    #[tokio::test]
    async fn an_answer_counts_until_the_last_of_it_is_written() {
        let length = 3 * PIECE as u64;
        let memory = Shares::new(2 * length, length);
        let first = counted(&memory, true, answer("ann")).await.expect("free");
        assert_eq!((first.status(), memory.taken()), (StatusCode::OK, length));
        let second = counted(&memory, true, answer("ann")).await;
        assert_eq!(
            second.map(|_| ()).map_err(|refused| refused.body.status),
            Err(429),
            "her share is unread"
        );
        let done = counted(&memory, false, answer("ann")).await.expect("kept");
        assert_eq!(done.status(), StatusCode::OK, "what was done is told");
        assert!(counted(&memory, true, answer("bob")).await.is_ok());
        let mut pieces = first.into_body().into_data_stream();
        let mut last = Bytes::new();
        while let Some(piece) = pieces.next().await {
            last = piece.expect("it is whole");
            assert_eq!(last.len(), PIECE);
        }
        drop(pieces);
        assert_eq!(memory.taken(), length, "a piece waits to be written");
        drop(last);
        assert_eq!(memory.taken(), 0);
    }

    #[tokio::test]
    async fn the_answer_to_a_change_keeps_the_share_of_its_body() {
        let memory = Shares::new(100, 100);
        let share = Arc::new(memory.take("ann".to_owned(), 70, false).expect("free"));
        let mut response = answer("ann");
        response.extensions_mut().insert(Held::new(share));
        let response = counted(&memory, false, response).await.expect("kept");
        assert_eq!((response.status(), memory.taken()), (StatusCode::OK, 70));
        drop(response);
        assert_eq!(memory.taken(), 0);
    }
}
