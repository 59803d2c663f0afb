//! One exchange with a node, tried again where that is safe.
//!
//! What is safe: anything that never left (nobody listens), anything that a node refused for now (503, 429 with
//! `Retry-After`), and what may be done twice (GET, PUT, a POST with its key) when the connection broke off. All of it
//! within the client's time limit; somebody who isn't there is asked a few times only, and somebody who speaks TLS where
//! plain HTTP was sent once: that is no matter of time.

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
use windrow_tls::Trouble;

/// Which surface calls.
const CLIENT: HeaderName = HeaderName::from_static("windrow-client");

/// The longest answer that is kept in memory; longer ones are downloads. Unit: bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A node that says only after so long that its database is away has waited for it already.
const WAITED: Duration = Duration::from_secs(2);
/// How often somebody who doesn't listen is asked. (A node that restarts is back within a second.)
const CONNECTS_MAX: u32 = 3;
/// How often somebody is asked who hangs up without a word each time. A node that died is away by then, or back; what speaks
/// another protocol never answers.
const HANG_UPS_MAX: u32 = 5;
/// The first wait; each next one is twice as long.
const WAIT_FIRST: Duration = Duration::from_millis(200);
/// The longest wait, and what a node that names none gets.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How long it may take to find out whether TLS is spoken where a connection was closed without an answer.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// Where a node says how it is, and how long that may take: it looks for its database for two seconds.
const READY: &str = "/readyz";
const READY_MAX: Duration = Duration::from_secs(3);

/// Why one exchange failed.
struct Failed {
    error: ClientError,
    /// Whether it is certain that the node did nothing.
    is_undone: bool,
    /// Whether nobody listens there.
    is_absent: bool,
    /// How long the node wants to be left alone.
    wait: Option<Duration>,
}

impl From<ClientError> for Failed {
    /// Nobody knows what became of it.
    fn from(error: ClientError) -> Failed {
        Failed {
            error,
            is_undone: false,
            is_absent: false,
            wait: None,
        }
    }
}

/// Whether the node waited for its database, so that asking again would only make whoever calls wait as long once more.
fn has_waited(answer: &Answer, took: Duration) -> bool {
    answer.status == 503 && took >= WAITED && answer.text().contains("/problems/store-unavailable")
}

impl Client {
    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// [`ClientError::Problem`] for every status from 400 on that a node explains; else what kept the answer away.
    pub async fn send(&self, request: Request) -> Result<Answer, ClientError> {
        let answer = self.send_raw(request).await?;
        match answer.status {
            200..=299 => Ok(answer),
            _ => Err(self.refusal(&answer)),
        }
    }

    /// The same, but every status that a node may answer is an answer.
    ///
    /// # Errors
    /// What kept the answer away.
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
                .note(&format!("{}; again in {} ms", failed.error, pause.as_millis()));
            sleep(pause).await;
            wait = (wait * 2).min(WAIT_MAX);
            attempt += 1;
        }
    }

    /// What a connection means that was closed without an answer: a node that died is asked again, one that speaks TLS never
    /// answers. Many servers close without the alert that would tell.
    async fn told_apart(&self, failed: Failed, was_probed: &mut bool) -> Failed {
        let ClientError::Closed { secure, .. } = &failed.error else {
            return failed;
        };
        if std::mem::replace(was_probed, true) || !self.speaks_tls(secure).await {
            return failed;
        }
        ClientError::wants_https(&self.server).into()
    }

    /// Whether a handshake of TLS is answered there. No token is sent, and no certificate is believed.
    async fn speaks_tls(&self, secure: &str) -> bool {
        let nothing = Full::new(Bytes::new()).map_err(|never| match never {});
        let probe = hyper::Request::head(format!("{secure}/version")).body(nothing.boxed_unsync());
        let Ok(probe) = probe else { return false };
        let answer = tokio::time::timeout(PROBE_MAX, self.pool.request(probe)).await;
        match answer {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => matches!(
                Trouble::of(&error),
                Some(Trouble::Certificate(_) | Trouble::Handshake(_))
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

    /// Sends the head and a body; the answer's body is still on its way.
    async fn exchange(&self, request: &Request, body: Body) -> Result<Response<Incoming>, Failed> {
        let made = self.made(request, body)?;
        self.pool.request(made).await.map_err(|error| Failed {
            is_undone: error.is_connect(),
            is_absent: error.is_connect(),
            ..ClientError::of_exchange(&self.server, &error).into()
        })
    }

    /// No answer came in time.
    pub(super) fn late(&self) -> ClientError {
        ClientError::Timeout {
            server: self.server.clone(),
            after: self.timeout,
            node: None,
        }
    }

    /// The same error; where no answer came in time, with what the node says of itself: a guess would lead astray.
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

    /// Asks the node how it is. No token is sent.
    async fn readiness(&self) -> Option<Readiness> {
        let nothing = Full::new(Bytes::new()).map_err(|never| match never {});
        let asked = hyper::Request::get(format!("{}{READY}", self.server));
        let asked = asked.body(nothing.boxed_unsync()).ok()?;
        let answer = async { self.whole(self.pool.request(asked).await.ok()?).await.ok() };
        let answer = tokio::time::timeout(READY_MAX, answer).await.ok()??;
        answer.read().ok()
    }

    /// An answer that began and didn't end.
    pub(super) fn broken_off(&self, error: impl std::fmt::Display) -> ClientError {
        ClientError::Unreachable {
            server: self.server.clone(),
            why: format!("the answer broke off: {error}"),
        }
    }

    /// The same for streams, which can't be sent again.
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
            .map_err(|error| {
                ClientError::Request(format!("{:?} can't be asked for: {error}", request.path))
            })?;
        let headers = made.headers_mut();
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("windrow/", env!("CARGO_PKG_VERSION"))),
        );
        // The audit says from where a change came.
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

    /// Reads a whole answer that is known to be a refusal.
    pub(super) async fn refused(&self, response: Response<Incoming>) -> ClientError {
        match self.whole(response).await {
            Ok(answer) => self.refusal(&answer),
            Err(error) => error,
        }
    }

    /// How long the node wants to be left alone before the same is asked again; none when it answered.
    fn asks_for_patience(&self, answer: &Answer) -> Option<Duration> {
        let named = answer.header(RETRY_AFTER.as_str());
        let named = named
            .and_then(|text| text.trim().parse().ok())
            .map(Duration::from_secs);
        match answer.status {
            503 => Some(named.unwrap_or(WAIT_MAX)),
            429 => named,
            // The first of two equal requests is still being answered: this one gets its answer.
            409 => match self.refusal(answer) {
                ClientError::Problem(problem) if problem.slug() == "idempotency-in-progress" => {
                    Some(named.unwrap_or(WAIT_FIRST))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// What an answer that is none means.
    pub fn refusal(&self, answer: &Answer) -> ClientError {
        let kind = answer.header(CONTENT_TYPE.as_str()).unwrap_or("no type");
        if kind.starts_with("application/problem+json")
            && let Ok(problem) = answer.read::<Problem>()
        {
            let status = answer.status;
            return ClientError::Problem(Box::new(Problem { status, ..problem }));
        }
        let (server, status) = (self.server.clone(), answer.status);
        let why = match answer.header(LOCATION.as_str()) {
            Some(place) if (300..400).contains(&status) => {
                format!("it answered {status} and points to {place}; redirects are not followed")
            }
            _ => format!("it answered {status} with {kind}, not with a problem"),
        };
        match status {
            // A proxy whose node is away.
            502..=504 => ClientError::Unreachable { server, why },
            _ => ClientError::NotWindrow { server, why },
        }
    }
}
