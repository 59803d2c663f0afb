//! A client of `/v1/events`.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Incoming;
use serde_json::Value;

use crate::support::{Client, PATIENCE};

/// An event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// A stream of events that is being read.
pub(crate) struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let told = Told::read(block);
                self.text = rest.to_owned();
                if told.is_some() {
                    return told;
                }
                continue;
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame())
                .await
                .expect("an event in time")?;
            let part = frame.expect("the stream goes on").into_data().expect("data");
            self.text.push_str(std::str::from_utf8(&part).expect("text"));
        }
    }

    /// Every event up to the first that fits.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Told) -> bool) -> Vec<Told> {
        let mut all = Vec::new();
        loop {
            let told = self
                .next()
                .await
                .unwrap_or_else(|| panic!("the stream ended: {all:#?}"));
            let is_it = fits(&told);
            all.push(told);
            if is_it {
                return all;
            }
        }
    }
}

impl Told {
    /// None for a comment.
    fn read(block: &str) -> Option<Told> {
        let member = |name: &str| {
            block
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let id = member("id")?.parse().expect("a number");
        let data = serde_json::from_str(member("data")?).expect("JSON");
        Some(Told {
            id,
            kind: member("event")?.to_owned(),
            data,
        })
    }
}

impl Client {
    /// Opens a stream of events, behind the event of this id.
    pub(crate) async fn events(&self, path: &str, last: Option<u64>) -> Events {
        let mut request = Request::get(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let answer = self
            .pool
            .request(request.body(Full::new(Bytes::new())).expect("a request"))
            .await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Events {
            body: answer.into_body(),
            text: String::new(),
        }
    }
}
