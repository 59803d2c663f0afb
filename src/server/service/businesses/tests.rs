use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use windrow_config::Config;
use windrow_engine::ports::handling::hook::HandlerChecker;
use windrow_handlers::http::{HookClient, Transports};
use windrow_host::clock::SystemClock;
use windrow_host::vault::KeyVault;

fn checker() -> impl HandlerChecker {
    HookClient {
        http: Config::default().http_handler,
        commands: Config::default().command_handler,
        in_process: BTreeMap::new(),
        environment: Vec::new(),
        node: "n1".to_owned(),
        vault: Arc::new(KeyVault::with_key([1; 32])),
        clock: Arc::new(SystemClock::new()),
        transports: Arc::new(Transports::default()),
    }
}

/// A node that starts the command `push`.
fn commanding() -> Config {
    let mut config = Config::default();
    config.command_handler.enabled = true;
    let command = toml::from_str(r#"cmd = ["push"]"#).expect("a command");
    config.command_handler.commands.insert("push".to_owned(), command);
    config
}

/// A sound business with some members changed.
fn body(change: &Value) -> Result<BusinessBody, ServiceError> {
    let mut value = json!({"name": "push", "url": "http://127.0.0.1:9000/windrow"});
    merge_patch::apply(&mut value, change);
    BusinessBody::from_json(value)
}

fn pointers(change: &Value, config: &Config) -> Vec<String> {
    let body = body(change).unwrap_or_else(|error| panic!("{change}: {error}"));
    let secrets = BusinessSecrets::new("whsec_x".to_owned(), body.secret_headers.clone());
    let faults = validate::faults(&body, &secrets, config, &checker());
    faults.into_iter().map(|fault| fault.pointer).collect()
}

#[test]
fn each_member_that_can_not_be_used_is_named() {
    let long = "x".repeat(DISPLAY_NAME_MAX + 1);
    let table = [
        (json!({}), vec![]),
        (json!({"name": "Push!"}), vec!["/name"]),
        (json!({"pool": ""}), vec!["/pool"]),
        (json!({"display_name": ""}), vec!["/display_name"]),
        (json!({"display_name": long}), vec!["/display_name"]),
        (json!({"display_name": "a\u{1b}[2Jb"}), vec!["/display_name"]),
        (json!({"display_name": "推送"}), vec![]),
        (json!({"url": null}), vec!["/url"]),
        (json!({"url": ""}), vec!["/url"]),
        (json!({"url": "http://h/user/{id}"}), vec!["/url"]),
        (json!({"url": "http://h/user/%7Bid%7D"}), vec![]),
        (json!({"command": "push"}), vec!["/command"]),
        (json!({"url": null, "command": "push"}), vec!["/command"]),
        (json!({"url": "gopher://x"}), vec!["/url"]),
        (json!({"headers": {"host": "x"}}), vec!["/headers/host"]),
        (
            json!({"secret_headers": {"x-key": "a\nb"}}),
            vec!["/secret_headers/x-key"],
        ),
        (json!({"response_pointer": "x"}), vec!["/response_pointer"]),
        (json!({"proxy": "ftp://x"}), vec!["/proxy"]),
        (json!({"ca_pem": "x"}), vec!["/ca_pem"]),
        (
            json!({"hooks": {"stopped": {"url": "x"}}}),
            vec!["/hooks/stopped/url"],
        ),
        (
            json!({"hooks": {"prepare": {"timeout": "0s"}}}),
            vec!["/hooks/prepare/timeout"],
        ),
        (
            json!({"hooks": {"prepare": {"timeout": "8d"}}}),
            vec!["/hooks/prepare/timeout"],
        ),
        (
            json!({"hooks": {"prepare": {"timeout": "7d"}, "validate": {}}}),
            vec![],
        ),
        (json!({"defaults": {"timeout": "0s"}}), vec!["/defaults/timeout"]),
        (json!({"defaults": {"rate": "unlimited"}}), vec!["/defaults/rate"]),
        (
            json!({"defaults": {"window": 10, "concurrency": 20}}),
            vec!["/defaults/window"],
        ),
        (json!({"limits": {"rate": "50/s"}}), vec!["/limits/rate"]),
        (
            json!({"limits": {"rate": "50/s"}, "defaults": {"rate": "50/s"}}),
            vec![],
        ),
        (json!({"defaults": {"rate": "auto"}}), vec![]),
        (
            json!({"limits": {"rate": "50/s"}, "defaults": {"rate": "auto"}}),
            vec![],
        ),
        (
            json!({"limits": {"rate": "50/s"}, "defaults": {"rate": "auto up to 51/s"}}),
            vec!["/limits/rate"],
        ),
        (
            json!({"limits": {"concurrency": 8}, "defaults": {"batch": 16}}),
            vec!["/limits/concurrency"],
        ),
        (json!({"limits": {"concurrency": 1}}), vec![]),
    ];
    for (change, expected) in table {
        assert_eq!(pointers(&change, &Config::default()), expected, "{change}");
    }
}

#[test]
fn a_command_is_one_of_the_configuration_and_says_nothing_of_calls() {
    let config = commanding();
    let command = |more: Value| {
        let mut change = json!({"url": null, "command": "push"});
        merge_patch::apply(&mut change, &more);
        change["url"] = Value::Null;
        pointers(&change, &config)
    };
    assert_eq!(command(json!({})), Vec::<String>::new());
    assert_eq!(command(json!({"command": "other"})), ["/command"]);
    assert_eq!(command(json!({"headers": {"x": "1"}})), ["/headers"]);
    assert_eq!(
        command(json!({"insecure_skip_verify": true})),
        ["/insecure_skip_verify"]
    );
    assert_eq!(
        command(json!({"hooks": {"validate": {}}})),
        ["/hooks/validate/url"]
    );
    assert_eq!(
        command(json!({"hooks": {"validate": {"url": "http://x/"}}})),
        Vec::<String>::new()
    );
}

#[test]
fn a_member_that_does_not_exist_is_refused_with_its_place() {
    for (change, pointer) in [
        (json!({"colour": 1}), "/colour"),
        (json!({"hooks": {"started": {}}}), "/hooks/started"),
        (json!({"hooks": {"stopped": {"uri": "x"}}}), "/hooks/stopped/uri"),
        (json!({"limits": {"rate": "fast"}}), "/limits/rate"),
        (json!({"defaults": {"batch": 0}}), "/defaults/batch"),
        (json!({"headers": {"x": 1}}), "/headers/x"),
    ] {
        let Err(ServiceError::Invalid(faults)) = body(&change) else {
            panic!("{change} was taken")
        };
        assert_eq!(faults[0].pointer, pointer, "{change}: {faults:?}");
    }
}

fn stored() -> Business {
    let body = body(&json!({"secret_headers": {"authorization": "Bearer geheim"}, "headers": {"x": "1"}}));
    tentative("push", body.expect("sound").spec(), Vec::new(), WallMs(0))
}

#[test]
fn a_patch_changes_what_it_names_and_never_the_name() {
    let before = stored();
    let after = patched(
        &before,
        &json!({"headers": {"x": null, "y": "2"}, "display_name": "Push"}),
    );
    let after = after.expect("sound");
    assert_eq!(after.headers, BTreeMap::from([("y".to_owned(), "2".to_owned())]));
    assert_eq!(
        (after.display_name.as_deref(), &after.url),
        (Some("Push"), &body(&json!({})).unwrap().url)
    );
    assert!(patched(&before, &json!({"name": "push"})).is_ok());
    let renamed = patched(&before, &json!({"name": "mail"}));
    assert!(matches!(renamed, Err(ServiceError::Unprocessable(faults)) if faults[0].pointer == "/name"));
    assert!(matches!(
        patched(&before, &json!([])),
        Err(ServiceError::Invalid(_))
    ));
}

#[test]
fn a_mask_keeps_a_stored_secret_and_stands_for_none_that_is_not_there() {
    let headers = BTreeMap::from([("authorization".to_owned(), "Bearer geheim".to_owned())]);
    let known = BusinessSecrets::new("whsec_x".to_owned(), headers);
    let shown = BusinessBody::of("push", &stored().spec);
    assert_eq!(shown.secret_headers["authorization"], MASK);
    assert!(!shown.to_json().to_string().contains("geheim"));
    assert_eq!(given(&shown, &known, None).as_ref(), Ok(&known));
    let sent = |change: Value| {
        let body = patched(&stored(), &change).expect("sound");
        given(&body, &known, Some(&stored().spec.handler)).map(|given| given.headers)
    };
    let both = sent(json!({"secret_headers": {"x-key": "k2"}})).expect("given");
    assert_eq!(
        (both["authorization"].as_str(), both["x-key"].as_str()),
        ("Bearer geheim", "k2")
    );
    assert_eq!(
        sent(json!({"secret_headers": {"authorization": null}})),
        Ok(BTreeMap::new())
    );
    let elsewhere = json!({"url": "https://other.example/windrow"});
    let Err(ServiceError::Unprocessable(faults)) = sent(elsewhere) else {
        panic!("a secret goes to another origin")
    };
    assert_eq!(faults[0].pointer, "/secret_headers/authorization");
    let again = json!({"url": "https://other.example/", "secret_headers": {"authorization": "Bearer neu"}});
    assert_eq!(sent(again).expect("given")["authorization"], "Bearer neu");
    let Err(ServiceError::Unprocessable(faults)) = sent(json!({"secret_headers": {"x-key": MASK}})) else {
        panic!("a mask without a value was taken")
    };
    assert_eq!(faults[0].pointer, "/secret_headers/x-key");
}

#[test]
fn only_a_failed_check_stands_in_the_way_and_its_report_is_shown() {
    let line = |check, result| CheckLine {
        check,
        result,
        detail: "seen".to_owned(),
        advice: Some("try".to_owned()),
    };
    let warned = [
        line("reachable", CheckResult::Ok),
        line("signature", CheckResult::Warn),
    ];
    assert_eq!(refuse_failed(&warned), Ok(()));
    let failed = [
        line("reachable", CheckResult::Ok),
        line("ping", CheckResult::Fail),
    ];
    let Err(ServiceError::CheckFailed { detail, report }) = refuse_failed(&failed) else {
        panic!("passed")
    };
    assert_eq!(detail, "ping: seen");
    assert_eq!(
        json!(report[1]),
        json!({"check": "ping", "result": "fail", "detail": "seen", "try": "try"})
    );
}

#[test]
fn a_signing_secret_is_one_that_signs() {
    let (one, other) = (signing_secret().expect("made"), signing_secret().expect("made"));
    assert_ne!(one, other);
    windrow_handlers::sign::Signer::new(&[one, other]).expect("two sound secrets");
}

#[test]
fn a_business_is_never_shown_with_its_secrets() {
    let canary = "c4n4ry";
    let body = body(&json!({"secret_headers": {"authorization": canary}})).expect("sound");
    let secrets = BusinessSecrets::new(canary.to_owned(), body.secret_headers.clone());
    let business = tentative("push", body.spec(), secrets.to_bytes(), WallMs(0));
    let texts = [
        format!("{body:?}"),
        format!("{secrets:?}"),
        format!("{business:?}"),
        serde_json::to_string(&body.spec()).expect("JSON"),
        BusinessBody::of("push", &business.spec).to_json().to_string(),
    ];
    for text in texts {
        assert!(!text.contains(canary), "{text}");
    }
}
