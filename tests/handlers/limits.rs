//! Limits that services describe in the headers of their answers.

use std::time::Duration;

use serde_json::json;

use windrow_config::HttpHandler;
use windrow_core::business::request::{RequestHandlerSpec, RequestSpec};
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{BusinessSpec, LimitsFrom};
use windrow_core::ids::WallMs;
use windrow_core::pilot::headers::Unit;
use windrow_engine::ports::handling::handler::{
    CallFailure, HandlerFactory, ItemVerdict, Reply, RunContext, Told,
};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_handlers::http::HttpOptions;
use windrow_handlers::request::{RequestHandlerFactory, RequestOptions};

use crate::support_server::{Act, Server, clock, context, open, single};

/// Time of the server, far from that of this machine.
const DATE: &str = "Sat, 28 Nov 2009 12:00:00 GMT";

/// Unit, number left, seconds until it is full again.
type Window = (Unit, u64, Option<u64>);
/// Name, headers, windows.
type Family = (&'static str, Vec<(&'static str, &'static str)>, Vec<Window>);

fn families() -> Vec<Family> {
    vec![
        (
            "units after the part",
            vec![
                ("x-ratelimit-limit-requests", "60"),
                ("x-ratelimit-remaining-requests", "59"),
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-remaining-tokens", "149984"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            vec![(Unit::Calls, 59, Some(1)), (Unit::Tokens, 149_984, Some(360))],
        ),
        (
            "units before the part, times as RFC 3339",
            vec![
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "2009-11-28T12:00:30Z"),
                ("anthropic-ratelimit-input-tokens-remaining", "7000"),
            ],
            vec![(Unit::Calls, 0, Some(30)), (Unit::Tokens, 7000, None)],
        ),
        (
            "an epoch",
            vec![
                ("X-RateLimit-Remaining", "4999"),
                ("X-RateLimit-Reset", "1259413200"),
            ],
            vec![(Unit::Calls, 4999, Some(3600))],
        ),
        (
            "a draft",
            vec![("RateLimit-Remaining", "42"), ("RateLimit-Reset", "17")],
            vec![(Unit::Calls, 42, Some(17))],
        ),
        (
            "a list",
            vec![("ratelimit", "limit=100, remaining=50, reset=5")],
            vec![(Unit::Calls, 50, Some(5))],
        ),
        (
            "the IETF's",
            vec![
                ("RateLimit", "\"burst\";r=9;t=1, \"daily\";r=700;t=3600"),
                ("RateLimit-Policy", "\"burst\";q=10;w=1"),
            ],
            vec![(Unit::Calls, 9, Some(1)), (Unit::Calls, 700, Some(3600))],
        ),
    ]
}

async fn server(status: u16, headers: &[(&'static str, &str)], body: &str) -> Server {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let act = Act::Answer(status, headers.collect(), body.to_owned());
    Server::start(move |_| act.clone()).await
}

fn request(server: &Server) -> RequestOptions {
    RequestOptions::new(RequestSpec {
        call: format!("POST http://{}/", server.address),
        ..RequestSpec::default()
    })
}

async fn reply_to_request(options: RequestOptions, keeps_results: bool) -> Reply {
    let context = RunContext {
        keeps_results,
        ..(*context(Gate::always_open())).clone()
    };
    let factory = RequestHandlerFactory::sharing(options, clock(), std::sync::Arc::default());
    let handler = factory.open(std::sync::Arc::new(context)).expect("opens");
    handler.process(single()).await
}

async fn replies(server: &Server, from: LimitsFrom) -> [(&'static str, Reply); 2] {
    let http = HttpOptions {
        limits_from: from,
        ..HttpOptions::new(server.url())
    };
    let request = RequestOptions {
        limits_from: from,
        ..request(server)
    };
    [
        ("http", open(http).process(single()).await),
        ("request", reply_to_request(request, false).await),
    ]
}

fn told(reply: Reply, about: &str) -> Told {
    match reply {
        Reply::Told(told) => *told,
        other => panic!("{about}: no limits: {other:?}"),
    }
}

fn windows(told: &Told) -> Vec<Window> {
    let windows = told.limits.windows.iter();
    windows
        .map(|window| {
            (
                window.unit,
                window.left,
                window.reset.map(|reset| reset.as_secs()),
            )
        })
        .collect()
}

/// The pause that a reply asks for.
fn pause(reply: Reply) -> Option<Duration> {
    match reply {
        Reply::Failed(failed) => match *failed {
            CallFailure::BackPressure { after, .. } => after,
            other => panic!("no pause: {other:?}"),
        },
        other => panic!("no pause: {other:?}"),
    }
}

#[tokio::test]
async fn windows_of_each_family_come_with_successes_and_refusals() {
    for (family, headers, expected) in families() {
        let headers = [&headers[..], &[("date", DATE), ("retry-after", "7")]].concat();
        for status in [204, 429, 500] {
            let server = server(status, &headers, "").await;
            for (handler, reply) in replies(&server, LimitsFrom::Auto).await {
                let about = format!("{family}, {status}, {handler}");
                let told = told(reply, &about);
                assert_eq!(windows(&told), expected, "{about}");
                let wait = Some(Duration::from_secs(7));
                assert_eq!(told.limits.retry_after, wait, "{about}");
                match status {
                    204 => assert_eq!(told.reply, Reply::AllOk, "{about}"),
                    429 => assert_eq!(pause(told.reply), wait, "{about}"),
                    _ => assert!(matches!(told.reply, Reply::Failed(_)), "{about}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn an_output_comes_together_with_the_limits() {
    let server = server(200, &[("x-ratelimit-remaining", "3")], r#"{"id":7}"#).await;
    let told = told(reply_to_request(request(&server), true).await, "an output");
    assert_eq!(windows(&told), [(Unit::Calls, 3, None)]);
    let Reply::Items(replies) = told.reply else {
        panic!("no verdicts: {:?}", told.reply)
    };
    assert!(matches!(replies.verdicts[0].1, ItemVerdict::SucceededWith(_)));
}

#[tokio::test]
async fn limits_that_are_off_leave_only_the_wait_of_a_failure() {
    for (family, headers, _) in families() {
        let headers = [&headers[..], &[("date", DATE), ("retry-after", "7")]].concat();
        let good = server(204, &headers, "").await;
        for (handler, reply) in replies(&good, LimitsFrom::Off).await {
            assert_eq!(reply, Reply::AllOk, "{family}, {handler}");
        }
        let busy = server(429, &headers, "").await;
        for (handler, reply) in replies(&busy, LimitsFrom::Off).await {
            assert_eq!(pause(reply), Some(Duration::from_secs(7)), "{family}, {handler}");
        }
    }
}

#[tokio::test]
async fn a_date_is_read_by_the_servers_clock_and_a_wait_in_milliseconds_only_if_limits_are_on() {
    let headers = [
        ("date", DATE),
        ("retry-after", "Saturday, 28-Nov-09 12:00:05 GMT"),
        ("retry-after-ms", "1250"),
    ];
    let server = server(429, &headers, "").await;
    for (from, wait) in [(LimitsFrom::Off, 5000), (LimitsFrom::Auto, 1250)] {
        for (handler, reply) in replies(&server, from).await {
            assert_eq!(pause(reply), Some(Duration::from_millis(wait)), "{handler}");
        }
    }
}

#[tokio::test]
async fn nonsense_breaks_no_call() {
    let long = "9".repeat(5000);
    for value in [
        "",
        "-1",
        "soon",
        "é",
        "\"a\";r=x",
        "1e9",
        "99999999999999999999999999",
        &long,
    ] {
        let names = [
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
            "ratelimit",
            "anthropic-ratelimit-tokens-reset",
            "retry-after-ms",
            "date",
        ];
        let headers = names.map(|name| (name, value));
        let good = server(204, &headers, "").await;
        for (handler, reply) in replies(&good, LimitsFrom::Auto).await {
            assert_eq!(reply, Reply::AllOk, "{handler}: {value:?}");
        }
        let busy = server(429, &headers, "").await;
        for (_, reply) in replies(&busy, LimitsFrom::Auto).await {
            let day = Duration::from_secs(24 * 3600);
            assert!(pause(reply).is_none_or(|wait| wait <= day), "{value:?}");
        }
    }
}

#[tokio::test]
async fn requests_read_limits_unless_they_are_off_and_urls_only_if_they_are_on() {
    let server = server(204, &[("x-ratelimit-remaining", "3")], "").await;
    let reply = open(HttpOptions::new(server.url())).process(single()).await;
    assert_eq!(reply, Reply::AllOk);
    let reply = reply_to_request(request(&server), false).await;
    assert!(matches!(reply, Reply::Told(_)), "{reply:?}");
    for (given, request, url) in [
        (None, LimitsFrom::Auto, LimitsFrom::Off),
        (Some(LimitsFrom::Auto), LimitsFrom::Auto, LimitsFrom::Auto),
        (Some(LimitsFrom::Off), LimitsFrom::Off, LimitsFrom::Off),
    ] {
        let (config, secrets) = (HttpHandler::default(), BusinessSecrets::default());
        let own = RequestHandlerSpec {
            limits_from: given,
            ..RequestHandlerSpec::default()
        };
        let options = RequestOptions::for_business(&config, &own, &secrets);
        assert_eq!(options.limits_from, request, "{given:?}");
        let mut http = json!({"url": "http://h/"});
        if let Some(given) = given {
            http["limits_from"] = json!(given);
        }
        let spec: BusinessSpec =
            serde_json::from_value(json!({"pool": "p", "handler": {"http": http}})).expect("a business");
        let options = HttpOptions::for_business(&config, "http://h/", &spec, &secrets, WallMs(0));
        assert_eq!(options.limits_from, url, "{given:?}");
    }
}
