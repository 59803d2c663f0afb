//! One exchange with a node, retried if that is safe.
//!
//! Safe to retry: requests that were never sent (nobody listens), requests that the node refused for now (503, 429
//! with `Retry-After`), and repeatable ones (GET, PUT, a POST with its key) after a broken connection. All attempts
//! stay within the client's time limit. A server that doesn't listen is tried only a few times, and one that expects
//! TLS instead of plain HTTP only once, since waiting doesn't help.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, PROXY_AUTHORIZATION, RETRY_AFTER,
    USER_AGENT,
};
use hyper::{Response, StatusCode};
use tokio::time::{Instant, sleep, timeout_at};

use super::answer::Answer;
use super::error::ClientError;
use super::request::Request;
use super::{Body, Client};
use windrow_api::{Problem, Readiness};
use windrow_tls::TlsFault;

/// Header with the surface that sends the request.
const CLIENT: HeaderName = HeaderName::from_static("windrow-client");

/// Maximum size of a response kept in memory, in bytes; longer ones are downloads.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Time after which a node that reports its database down must have waited for it.
const WAITED: Duration = Duration::from_secs(2);
/// Maximum attempts if nobody listens. A restarting node is back within a second.
const CONNECTS_MAX: u32 = 3;
/// Maximum attempts if the server closes each connection without a response. By then a node that died is gone or
/// back, and a server of another protocol never responds.
const HANG_UPS_MAX: u32 = 5;
/// First wait between attempts; doubles each time.
const WAIT_FIRST: Duration = Duration::from_millis(200);
/// Maximum wait, also used if the node suggests none.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Time limit to find out if a server that closed the connection speaks TLS.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// Readiness endpoint of a node. Below, its time limit: the node looks for its database for two seconds.
const READY: &str = "/readyz";
const READY_MAX: Duration = Duration::from_secs(3);

/// A failed exchange, with what it means for a retry.
struct Failed {
    error: ClientError,
    /// True if the node certainly did nothing.
    is_undone: bool,
    /// True if nobody listens there.
    is_absent: bool,
    /// Wait requested by the node.
    wait: Option<Duration>,
}

impl From<ClientError> for Failed {
    /// Treats the outcome as unknown.
    fn from(error: ClientError) -> Failed {
        Failed {
            error,
            is_undone: false,
            is_absent: false,
            wait: None,
        }
    }
}

/// True if the node already waited for its database, so that a retry would only double the caller's wait.
fn has_waited(answer: &Answer, took: Duration) -> bool {
    answer.status == 503 && took >= WAITED && answer.text().contains("/problems/store-unavailable")
}

impl Client {
    /// Sends a request and reads the whole response.
    ///
    /// # Errors
    /// [`ClientError::Problem`] for every status from 400 on that a node explains; otherwise the reason why there is
    /// no response.
    pub async fn send(&self, request: Request) -> Result<Answer, ClientError> {
        let answer = self.send_raw(request).await?;
        match answer.status {
            200..=299 => Ok(answer),
            _ => Err(self.refusal(&answer)),
        }
    }

    /// Sends a request and reads the whole response, whatever its status.
    ///
    /// # Errors
    /// The reason why there is no response.
    pub async fn send_raw(&self, request: Request) -> Result<Answer, ClientError> {
        request.check()?;
        let deadline = Instant::now() + self.timeout;
        let (mut wait, mut attempt, mut was_probed) = (WAIT_FIRST, 1, false);
        loop {
            let begun = Instant::now();
            let failed = match self.once(&request, deadline).await {
                Ok(answer) => match self.asks_for_patience(&answer) {
                    None => return Ok(answer),
                    Some(_) if request.once || has_waited(&answer, begun.elapsed()) => return Ok(answer),
                    Some(pause) if Instant::now() + pause >= deadline => return Ok(answer),
                    Some(pause) => Failed {
                        is_undone: true,
                        wait: Some(pause),
                        ..self.refusal(&answer).into()
                    },
                },
                Err(failed) => self.told_apart(failed, &mut was_probed).await,
            };
            let may_repeat = !request.once && (failed.is_undone || request.is_repeatable());
            let is_hang_up = matches!(failed.error, ClientError::Closed { .. });
            let is_over =
                failed.is_absent && attempt >= CONNECTS_MAX || is_hang_up && attempt >= HANG_UPS_MAX;
            let pause = failed.wait.unwrap_or(wait);
            if !may_repeat || is_over || !failed.error.is_passing() || Instant::now() + pause >= deadline {
                return Err(self.explained(failed.error, &request.path).await);
            }
            self.tap
                .note(&format!("{}; retrying in {} ms", failed.error, pause.as_millis()));
            sleep(pause).await;
            wait = (wait * 2).min(WAIT_MAX);
            attempt += 1;
        }
    }

    /// Interprets a connection that closed without a response: a node that died is tried again, one that expects TLS
    /// never responds. Many servers close without the alert that would show the difference.
    async fn told_apart(&self, failed: Failed, was_probed: &mut bool) -> Failed {
        let ClientError::Closed { secure, .. } = &failed.error else {
            return failed;
        };
        if std::mem::replace(was_probed, true) || !self.speaks_tls(secure).await {
            return failed;
        }
        ClientError::wants_https(&self.server).into()
    }

    /// True if the server responds to a TLS handshake. No token is sent, and no certificate is trusted.
    async fn speaks_tls(&self, secure: &str) -> bool {
        let nothing = Full::new(Bytes::new()).map_err(|never| match never {});
        let probe = hyper::Request::head(format!("{secure}/version")).body(nothing.boxed_unsync());
        let Ok(probe) = probe else { return false };
        let answer = tokio::time::timeout(PROBE_MAX, self.pool.request(probe)).await;
        match answer {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => matches!(
                TlsFault::of(&error),
                Some(TlsFault::Certificate(_) | TlsFault::ClientCertificate(_) | TlsFault::Handshake(_))
            ),
            Err(_) => false,
        }
    }

    async fn once(&self, request: &Request, deadline: Instant) -> Result<Answer, Failed> {
        let begun = Instant::now();
        self.tap.sent(request, Some(&request.body));
        let body = Full::new(request.body.clone())
            .map_err(|never| match never {})
            .boxed_unsync();
        let whole = async {
            let response = self.exchange(request, body).await?;
            Ok::<_, Failed>(self.whole(response).await?)
        };
        let answer = timeout_at(deadline, whole).await.map_err(|_| self.late())??;
        self.tap.answered(request, answer.status, begun.elapsed());
        self.tap.received(&answer.headers, Some(&answer.body));
        Ok(answer)
    }

    /// Sends a request and returns once the response head is there; the body may still be on its way.
    async fn exchange(&self, request: &Request, body: Body) -> Result<Response<Incoming>, Failed> {
        let made = self.made(request, body)?;
        self.pool.request(made).await.map_err(|error| Failed {
            is_undone: error.is_connect(),
            is_absent: error.is_connect(),
            ..ClientError::of_exchange(&self.server, &error).into()
        })
    }

    /// Returns the error for a timeout.
    pub(super) fn late(&self) -> ClientError {
        ClientError::Timeout {
            server: self.server.clone(),
            after: self.timeout,
            node: None,
        }
    }

    /// Adds the node's own readiness to a timeout error, since a guess at the cause would mislead.
    async fn explained(&self, error: ClientError, asked: &str) -> ClientError {
        match error {
            ClientError::Timeout { server, after, .. } if asked != READY => ClientError::Timeout {
                server,
                after,
                node: self.readiness().await,
            },
            error => error,
        }
    }

    /// Requests the node's readiness. No token is sent.
    async fn readiness(&self) -> Option<Readiness> {
        let nothing = Full::new(Bytes::new()).map_err(|never| match never {});
        let asked = hyper::Request::get(format!("{}{READY}", self.server));
        let asked = asked.body(nothing.boxed_unsync()).ok()?;
        let answer = async { self.whole(self.pool.request(asked).await.ok()?).await.ok() };
        let answer = tokio::time::timeout(READY_MAX, answer).await.ok()??;
        answer.read().ok()
    }

    /// Returns the error for a response that broke off.
    pub(super) fn broken_off(&self, error: impl std::fmt::Display) -> ClientError {
        ClientError::Unreachable {
            server: self.server.clone(),
            why: format!("the response broke off: {error}"),
        }
    }

    /// Same as `exchange`, for streams, which can't be sent again.
    pub(super) async fn exchange_once(
        &self,
        request: &Request,
        body: Body,
    ) -> Result<Response<Incoming>, ClientError> {
        self.exchange(request, body).await.map_err(|failed| failed.error)
    }

    fn made(&self, request: &Request, body: Body) -> Result<hyper::Request<Body>, ClientError> {
        let mut made = hyper::Request::builder()
            .method(request.method.clone())
            .uri(format!("{}{}", self.server, request.path))
            .body(body)
            .map_err(|error| ClientError::Request(format!("can't request {:?}: {error}", request.path)))?;
        let headers = made.headers_mut();
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("windrow/", env!("CARGO_PKG_VERSION"))),
        );
        // The audit log records the origin of a change.
        headers.insert(CLIENT, HeaderValue::from_static("cli"));
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        let to_proxy = self.proxy_authorization.clone();
        headers.extend(to_proxy.map(|value| (PROXY_AUTHORIZATION, value)));
        headers.extend(request.headers.clone());
        Ok(made)
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<Answer, ClientError> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.broken_off(error))?;
        Ok(self.answer(head.status, head.headers, body.to_bytes()))
    }

    pub(super) fn answer(&self, status: StatusCode, headers: hyper::HeaderMap, body: Bytes) -> Answer {
        Answer {
            status: status.as_u16(),
            headers,
            body,
            server: self.server.clone(),
        }
    }

    /// Reads the whole response of a refused request into an error.
    pub(super) async fn refused(&self, response: Response<Incoming>) -> ClientError {
        match self.whole(response).await {
            Ok(answer) => self.refusal(&answer),
            Err(error) => error,
        }
    }

    /// Returns the wait before the same request should be repeated, or `None` if the response is final.
    fn asks_for_patience(&self, answer: &Answer) -> Option<Duration> {
        let named = answer.header(RETRY_AFTER.as_str());
        let named = named
            .and_then(|text| text.trim().parse().ok())
            .map(Duration::from_secs);
        match answer.status {
            503 => Some(named.unwrap_or(WAIT_MAX)),
            429 => named,
            // An equal request is still in progress; a repeat gets its response.
            409 => match self.refusal(answer) {
                ClientError::Problem(problem) if problem.slug() == "idempotency-in-progress" => {
                    Some(named.unwrap_or(WAIT_FIRST))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Converts a refusing response to an error.
    pub fn refusal(&self, answer: &Answer) -> ClientError {
        let kind = answer.header(CONTENT_TYPE.as_str()).unwrap_or("no content type");
        if kind.starts_with("application/problem+json")
            && let Ok(problem) = answer.read::<Problem>()
        {
            let status = answer.status;
            return ClientError::Problem(Box::new(Problem { status, ..problem }));
        }
        let (server, status) = (self.server.clone(), answer.status);
        let why = match answer.header(LOCATION.as_str()) {
            Some(place) if (300..400).contains(&status) => {
                format!("it answered {status}, a redirect to {place}; redirects are not followed")
            }
            _ => format!("it answered {status} with {kind}, not with a problem document"),
        };
        match status {
            // A proxy can't reach its node.
            502..=504 => ClientError::Unreachable { server, why },
            _ => ClientError::NotWindrow { server, why },
        }
    }
}
