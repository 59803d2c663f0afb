//! Faults made of client errors: refusals by a node, and requests that got no answer.

use super::flags::{as_flags, flag};
use crate::exit::Exit;
use crate::fault::Fault;
use windrow_client::{ClientError, Problem, ProblemField, Readiness};

/// Hint for a server that doesn't answer.
const REACH_HINT: &str = "check that the node runs and that the address is right; set another with \
    --server URL, WINDROW_SERVER or `windrow ctx use NAME`";
/// Problem slug of a node that can't use its database. `STORE_HINT` is its hint.
const STORE_AWAY: &str = "store-unavailable";
const STORE_HINT: &str = "check the database, then run the same command again; `windrow doctor \
    --config FILE` on the node's machine diagnoses it";
/// Problem slug of an idempotency key that was used before with other content. `KEY_HINT` is its hint.
const KEY_REUSED: &str = "idempotency-key-reused";
const KEY_HINT: &str = "use another --key for other lines; send the same lines again under this one";
/// Hint for a caller who isn't signed in.
const SIGN_IN_HINT: &str = "--token-file FILE, WINDROW_TOKEN, or a context with a token: `windrow ctx add NAME --server URL --token-file FILE`";

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Fault {
        Fault::of_client(error, Names::Flags)
    }
}

impl Fault {
    /// Converts a refusal by the node, or the reason why it didn't answer, into a fault.
    pub fn of_client(error: ClientError, names: Names) -> Fault {
        let text = error.to_string();
        let unanswered = "no response from the node";
        match error {
            ClientError::Problem(problem) => Fault::of_problem(*problem, names),
            ClientError::Address { server, .. } => {
                let is_bare = !server.is_empty() && !server.contains(['/', '@', ' ']);
                let meant = if is_bare {
                    server.as_str()
                } else {
                    "127.0.0.1:7700"
                };
                Fault::new(Exit::Usage, "invalid server address", text)
                    .hint(format!("--server http://{meant}"))
            }
            ClientError::Token(_) => Fault::new(Exit::NotAllowed, "not signed in", text).hint(SIGN_IN_HINT),
            ClientError::Trust(_) => Fault::new(Exit::Config, "can't read the trusted certificates", text)
                .hint("--ca-file FILE with PEM certificates"),
            ClientError::Request(_) => Fault::new(Exit::Usage, "can't send the request", text)
                .hint("`windrow openapi` lists every path"),
            ClientError::Input(_) => Fault::new(Exit::Failed, "the upload was interrupted", text)
                .hint("check the file or pipe, then start the upload again"),
            ClientError::Unreachable { .. } => {
                Fault::new(Exit::Unreachable, unanswered, text).hint(REACH_HINT)
            }
            ClientError::Timeout { server, node, .. } => {
                Fault::new(Exit::Unreachable, unanswered, text).hint(late_hint(&server, node.as_ref()))
            }
            ClientError::Closed { secure, .. } => Fault::new(Exit::Unreachable, unanswered, text).hint(
                format!("--server {secure} if it uses TLS; otherwise run the same command again"),
            ),
            ClientError::Tls { .. } => Fault::new(Exit::Unreachable, unanswered, text).hint(
                "--ca-file FILE trusts your own authority; use an http:// address if the node has no \
                    TLS",
            ),
            ClientError::Scheme { wanted, .. } => {
                Fault::new(Exit::Unreachable, unanswered, text).hint(format!("--server {wanted}"))
            }
            ClientError::NotWindrow { .. } => {
                Fault::new(Exit::Failed, "not a Windrow node", text).hint(REACH_HINT)
            }
        }
    }
}

/// Returns the hint for a request that timed out. A node that reported its readiness over plain HTTP doesn't speak
/// TLS, so TLS is suggested only without such a report.
fn late_hint(server: &str, node: Option<&Readiness>) -> String {
    let again = "run it again: nothing is done twice; --request-timeout waits longer";
    let secure = server.strip_prefix("http://").filter(|_| node.is_none());
    match (node, secure) {
        (Some(node), _) if node.reasons.iter().any(|why| why.reason == "store") => STORE_HINT.to_owned(),
        (_, Some(place)) => format!("{again}; if it uses TLS: --server https://{place}"),
        _ => again.to_owned(),
    }
}

/// Naming of request members in a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// JSON pointers, for a body that a person wrote.
    Members,
    /// Flags of the command line, for a body that was built from them.
    Flags,
}

impl Fault {
    fn of_problem(problem: Problem, names: Names) -> Fault {
        let slug = problem.slug();
        let what = match (slug, problem.title.as_str()) {
            ("unauthenticated", _) => "not signed in".to_owned(),
            (STORE_AWAY, _) if problem.detail.contains("full") => {
                "the node can't write to its database".to_owned()
            }
            (STORE_AWAY, _) => "the node can't use its database".to_owned(),
            ("validation-failed", _) if problem.missing().is_some() => "not found".to_owned(),
            ("", "") => format!("the node answered {}", problem.status),
            (_, title) => lower_first(title),
        };
        let mut because: Vec<String> = Vec::new();
        // If the detail merely lists the errors in one line, print each error on its own line instead.
        let told_below = !problem.errors.is_empty()
            && problem
                .errors
                .iter()
                .all(|field| problem.detail.contains(&field.detail));
        if slug == STORE_AWAY {
            because.push(format!("{}; no acknowledged data is lost", problem.detail));
        } else if !problem.detail.is_empty() && !told_below {
            because.push(problem.detail.clone());
        }
        let faults = match alone(&problem, names) {
            Some((bare, _)) => vec![bare],
            None => problem.errors.clone(),
        };
        because.extend(faults.iter().map(|field| line(&placed(field, &problem), names)));
        if problem.status >= 500 && !problem.request_id.is_empty() {
            because.push(format!("request {}; see the node's log", problem.request_id));
        }
        if because.is_empty() {
            because.push(format!("the node answered {} without a reason", problem.status));
        }
        Fault {
            exit: exit(&problem),
            what,
            because,
            hint: hint(&problem, names),
        }
    }
}

/// Maps a problem to the exit code that scripts rely on (`windrow help exit-codes`).
fn exit(problem: &Problem) -> Exit {
    match problem.status {
        // Same code whether the missing object was the one requested or one named in the request.
        _ if problem.missing().is_some() => Exit::NotFound,
        404 | 410 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        401 | 403 => Exit::NotAllowed,
        408 | 429 | 502..=504 => Exit::Unreachable,
        400..=499 => Exit::Rejected,
        _ if problem.slug() == "internal" => Exit::Bug,
        _ => Exit::Failed,
    }
}

fn line(field: &ProblemField, names: Names) -> String {
    let verb = |advice: &str| {
        if advice.starts_with("did you mean") {
            ""
        } else {
            "try "
        }
    };
    let advice = field
        .advice
        .as_ref()
        .map(|advice| format!("; {}{advice}", verb(advice)))
        .unwrap_or_default();
    let text = format!("{}{advice}", field.detail);
    match names {
        Names::Members if field.pointer.is_empty() => text,
        Names::Members => format!("{}: {text}", field.pointer),
        Names::Flags => {
            let text = as_flags(&text);
            flag(&field.pointer).map_or_else(|| text.clone(), |flag| format!("{flag}: {text}"))
        }
    }
}

/// Collections whose `name` is a positional argument instead of a flag, with the message for an invalid one.
const NAMED: [(&str, &str); 2] = [
    ("/v1/businesses", "invalid name"),
    ("/v1/schedules", "invalid SCHEDULE (its name within the business)"),
];

fn placed(field: &ProblemField, problem: &Problem) -> ProblemField {
    let named = NAMED.iter().find(|(place, _)| problem.instance == *place);
    let mut field = field.clone();
    if let Some((_, what)) = named.filter(|_| field.pointer == "/name") {
        field.pointer = "/business".to_owned();
        field.detail = format!("{what}: {}", field.detail);
    }
    field
}

/// Returns the node's advice as a hint. For a missing token the command line knows better advice.
fn hint(problem: &Problem, names: Names) -> Option<String> {
    if problem.slug() == "unauthenticated" {
        return Some(SIGN_IN_HINT.to_owned());
    }
    if problem.slug() == STORE_AWAY {
        return Some(STORE_HINT.to_owned());
    }
    if problem.slug() == KEY_REUSED && names == Names::Flags {
        return Some(KEY_HINT.to_owned());
    }
    if let Some(command) = change(problem).filter(|_| names == Names::Flags) {
        return Some(format!("`{command}` changes it; or choose another name"));
    }
    let rates = problem.more.max_rate.iter().flatten();
    let rates = rates.map(|(node, rate)| format!("--rate {rate} on {node}"));
    let allowed = allowed(problem);
    // The node's advice refers to a list in its answer, which is printed here already.
    let is_told = |advice: &str| {
        allowed.is_some() && advice.contains("`allowed`")
            || !problem.errors.is_empty() && advice.contains("`errors`")
    };
    let advice: Vec<String> = match list_of(problem).filter(|_| names == Names::Flags) {
        Some(command) => vec![format!("see `{command}`")],
        None => problem
            .advice
            .iter()
            .filter(|advice| !is_told(advice))
            .cloned()
            .collect(),
    };
    let mut all: Vec<String> = rates.chain(allowed).collect();
    all.extend(advice);
    all.extend(alone(problem, names).map(|(_, advice)| as_flags(advice)));
    if all.is_empty() && !problem.errors.is_empty() {
        all.push(match names {
            Names::Flags => "correct the values above; --help lists every flag".to_owned(),
            Names::Members => "correct the values above; `windrow openapi` lists every member".to_owned(),
        });
    }
    if all.is_empty() {
        all.push("-v shows the requests and responses".to_owned());
    }
    Some(all.join("\n  try  "))
}

/// Returns the command that changes the object which already has this name.
fn change(problem: &Problem) -> Option<&'static str> {
    match problem.instance.split('?').next()? {
        _ if problem.slug() != "name-taken" => None,
        "/v1/limits" => Some("windrow limit set NAME"),
        "/v1/schedules" => Some("windrow schedule set BUSINESS/NAME"),
        _ => None,
    }
}

/// Returns the commands allowed in the task's present state, or `None` if the node doesn't list any.
fn allowed(problem: &Problem) -> Option<String> {
    let actions = problem.more.allowed.as_ref()?;
    let task = problem
        .instance
        .strip_prefix("/v1/tasks/")
        .and_then(|rest| rest.split('/').next());
    let mut verbs: Vec<&str> = actions.iter().map(|action| verb(action)).collect();
    verbs.dedup();
    let command = |verb: &str| match task {
        Some(task) => format!("windrow task {verb} {task}"),
        None => verb.to_owned(),
    };
    Some(match verbs.is_empty() {
        true => format!(
            "{} creates a fresh copy; {} shows the outcome",
            command("clone"),
            command("report")
        ),
        false => {
            let commands: Vec<String> = verbs.into_iter().map(command).collect();
            format!("allowed now: {}", commands.join(", "))
        }
    })
}

/// Returns the only error of a request without its advice, and the advice, if no flag corresponds to the error:
/// without a flag there is nothing to correct.
fn alone(problem: &Problem, names: Names) -> Option<(ProblemField, &str)> {
    let [field] = problem.errors.as_slice() else {
        return None;
    };
    let advice = field.advice.as_deref()?;
    let is_of_none = names == Names::Flags && flag(&field.pointer).is_none();
    let bare = ProblemField {
        advice: None,
        ..field.clone()
    };
    is_of_none.then_some((bare, advice))
}

/// Returns the command that lists the objects among which the missing one was sought.
fn list_of(problem: &Problem) -> Option<String> {
    let path = problem.missing()?;
    let mut parts = path.strip_prefix("/v1/")?.split(['/', '?']);
    let list = match parts.next()? {
        // `task show` has the number of items; the list of failures may be empty.
        "tasks" if path.contains("/items/") => return Some(format!("windrow task show {}", parts.next()?)),
        "tasks" => "windrow task list",
        "businesses" => "windrow biz list",
        "nodes" => "windrow node list",
        "limits" => "windrow limit list",
        "datasets" if path.contains("/generations/") => "windrow dataset generations NAME",
        "datasets" => "windrow dataset list",
        _ => return None,
    };
    Some(list.to_owned())
}

/// Maps an action of a task to its verb on the command line.
fn verb(action: &str) -> &str {
    match action {
        "tune" | "describe" | "edit" => "set",
        // Sent by `stop --now`.
        "stop_now" => "stop",
        other => other,
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "the node refused the request".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use windrow_core::task::lifecycle::Verb;

    fn of_problem(problem: Problem, names: Names) -> Fault {
        crate::fault::know_command_line(crate::args::command);
        Fault::of_problem(problem, names)
    }

    fn fault(status: u16, slug: &str) -> Fault {
        let body = json!({"type": format!("http://n1/problems/{slug}"), "title": "No way", "detail": "d", "status": status,
            "request_id": "r-1", "try": ["this", "that"]});
        of_problem(
            serde_json::from_value::<Problem>(body).expect("a problem"),
            Names::Flags,
        )
    }

    #[test]
    fn each_status_has_its_exit_code() {
        for (status, exit) in [
            (400, Exit::Rejected),
            (401, Exit::NotAllowed),
            (403, Exit::NotAllowed),
            (404, Exit::NotFound),
            (409, Exit::Conflict),
            (412, Exit::Conflict),
            (413, Exit::Rejected),
            (422, Exit::Rejected),
            (429, Exit::Unreachable),
            (500, Exit::Failed),
            (503, Exit::Unreachable),
        ] {
            assert_eq!(fault(status, "x").exit, exit, "{status}");
        }
    }

    #[test]
    fn a_problem_says_what_because_and_every_advice() {
        assert_eq!(
            fault(409, "conflict").to_string(),
            "error: no way\n  because d\n  try  this\n  try  that"
        );
        assert_eq!(
            fault(500, "internal").exit,
            Exit::Bug,
            "a node's bug is one of windrow"
        );
        let inside = fault(500, "internal").to_string();
        assert!(inside.contains("request r-1; see the node's log"), "{inside}");
        assert!(fault(401, "unauthenticated").to_string().contains("--token-file"));
        assert!(fault(422, KEY_REUSED).to_string().contains("another --key"));
    }

    #[test]
    fn each_fault_of_a_body_has_its_line_and_pointer() {
        let body = json!({"title": "T", "detail": "two members", "status": 400, "errors": [
            {"pointer": "/rate", "detail": "not a rate", "try": "\"500/s\""}, {"pointer": "/x", "detail": "unknown"}]});
        let fault = of_problem(
            serde_json::from_value::<Problem>(body).expect("a problem"),
            Names::Flags,
        );
        assert_eq!(
            fault.because,
            ["two members", "--rate: not a rate; try \"500/s\"", "unknown"]
        );
        for (pointer, named) in [
            ("/limits/0", "--limit: no"),
            ("/limits/rate", "--limit-rate: no"),
            ("/deadline", "--deadline: no"),
            ("/skip_first", "--skip-first: no"),
            ("/filter/codes/0", "--code: no"),
            ("/source/items/3", "--items: no"),
            ("/labels/team", "--label team: no"),
            ("/retry/max_attempts", "--max-attempts: no"),
            ("data", "--key-column: no"),
            ("body", "no"),
            ("", "no"),
        ] {
            let field = |names| {
                let field = json!({"pointer": pointer, "detail": "no"});
                line(&serde_json::from_value(field).expect("a fault"), names)
            };
            assert_eq!(field(Names::Flags), named, "{pointer}");
            assert!(
                field(Names::Members).contains(pointer),
                "a body that a person wrote has pointers"
            );
        }
        let body = json!({"title": "T", "status": 409, "max_rate": {"n1": "888/s"}, "allowed": ["stop", "tune", "edit"],
                "try": ["one of the `allowed` actions"]});
        let hint = of_problem(
            serde_json::from_value::<Problem>(body).expect("a problem"),
            Names::Flags,
        )
        .hint
        .expect("a hint");
        assert_eq!(hint, "--rate 888/s on n1\n  try  allowed now: stop, set");
    }

    #[test]
    fn what_a_task_may_be_told_is_said_as_commands() {
        let hint = |allowed: &[&str]| {
            let body = json!({"title": "T", "status": 409, "allowed": allowed, "instance": "/v1/tasks/t7/finish",
                "try": ["one of the `allowed` actions"]});
            of_problem(
                serde_json::from_value::<Problem>(body).expect("a problem"),
                Names::Flags,
            )
            .hint
            .expect("a hint")
        };
        let said = hint(&["start", "tune", "edit"]);
        assert_eq!(said, "allowed now: windrow task start t7, windrow task set t7");
        let said = hint(&["stop", "stop_now", "cancel"]);
        assert_eq!(said, "allowed now: windrow task stop t7, windrow task cancel t7");
        let task = crate::args::command()
            .find_subcommand("task")
            .cloned()
            .expect("a noun");
        let commands = Verb::ALL.iter().filter(|verb| verb.is_command());
        for named in commands.map(|command| verb(command.as_str())) {
            assert!(task.find_subcommand(named).is_some(), "windrow task {named}");
        }
        let none = hint(&[]);
        assert_eq!(
            none,
            "windrow task clone t7 creates a fresh copy; windrow task report t7 shows the outcome"
        );
    }

    #[test]
    fn what_no_flag_says_is_followed_by_what_helps_and_not_by_every_flag() {
        let fault = |more: serde_json::Value| {
            let mut body =
                json!({"type": "http://n1/problems/not-found", "title": "T", "status": 404, "detail": "d"});
            let members = more.as_object().expect("an object").clone();
            body.as_object_mut().expect("an object").extend(members);
            of_problem(serde_json::from_value(body).expect("a problem"), Names::Flags)
        };
        let none = json!([{"pointer": "/filter", "detail": "t1 has no failures", "try": "`windrow task report t1`"}]);
        let none =
            fault(json!({"type": "http://n1/problems/validation-failed", "status": 422, "errors": none}));
        assert_eq!(none.because, ["d", "t1 has no failures"]);
        assert_eq!(none.hint.as_deref(), Some("`windrow task report t1`"));
        let beyond = fault(json!({"instance": "/v1/tasks/t1/items/20"}));
        let hint = "see `windrow task show t1`";
        assert_eq!(beyond.hint.as_deref(), Some(hint), "it may have no failures");
    }

    #[test]
    fn a_fault_is_told_once_and_no_advice_points_to_what_stands_there() {
        let body = json!({"title": "T", "status": 422, "detail": "/rate: no rate", "try": ["look at `errors`"],
            "errors": [{"pointer": "/rate", "detail": "no rate"}]});
        let fault = of_problem(
            serde_json::from_value::<Problem>(body).expect("a problem"),
            Names::Flags,
        );
        assert_eq!(
            fault.to_string(),
            "error: t\n  because --rate: no rate\n  try  correct the values above; --help lists every \
                flag"
        );
    }

    #[test]
    fn what_is_not_there_is_looked_for_in_the_list_of_its_kind() {
        let body = json!({"type": "/problems/not-found", "title": "T", "status": 404, "detail": "there is no task t9",
            "instance": "/v1/tasks/t9", "try": ["list what there is"]});
        let fault = of_problem(
            serde_json::from_value::<Problem>(body).expect("a problem"),
            Names::Flags,
        );
        assert_eq!(fault.hint.as_deref(), Some("see `windrow task list`"));
        let body = json!({"type": "/problems/not-found", "title": "T", "status": 404, "instance": "/v1/limits/gat",
            "try": ["list what there is"]});
        let fault = of_problem(
            serde_json::from_value::<Problem>(body).expect("a problem"),
            Names::Flags,
        );
        assert_eq!(fault.hint.as_deref(), Some("see `windrow limit list`"));
    }

    #[test]
    fn what_a_body_names_and_is_not_there_is_told_as_what_was_asked_for() {
        let body = json!({"type": "/problems/validation-failed", "title": "Validation failed", "status": 422,
            "instance": "/v1/tasks/t1/move", "missing": "/v1/nodes/n9", "try": ["look at `errors`"],
            "errors": [{"pointer": "/to", "detail": "there is no node n9"}]});
        let fault = of_problem(
            serde_json::from_value::<Problem>(body).expect("a problem"),
            Names::Flags,
        );
        assert_eq!(fault.exit, Exit::NotFound);
        assert_eq!(
            fault.to_string(),
            "error: not found\n  because --to: there is no node n9\n  try  see `windrow node list`"
        );
    }

    #[test]
    fn nobody_there_is_safe_to_try_again() {
        let error = ClientError::Unreachable {
            server: "http://n1".to_owned(),
            why: "refused".to_owned(),
        };
        let fault = Fault::from(error);
        assert_eq!(fault.exit, Exit::Unreachable);
        assert!(fault.to_string().contains("can't reach http://n1: refused"));
    }

    #[test]
    fn an_address_without_a_scheme_is_given_back_with_one() {
        let hint = |server: &str| {
            let (server, why) = (server.to_owned(), "no scheme".to_owned());
            Fault::from(ClientError::Address { server, why })
                .hint
                .expect("a hint")
        };
        assert_eq!(hint("127.0.0.1:7721"), "--server http://127.0.0.1:7721");
        assert_eq!(hint("ftp://n1"), "--server http://127.0.0.1:7700");
    }

    #[test]
    fn advice_is_for_what_was_typed() {
        let of = |instance: &str, slug: &str, pointer: &str, names| {
            let body = json!({"type": format!("/problems/{slug}"), "title": "T", "status": 422, "instance": instance,
                "errors": [{"pointer": pointer, "detail": "small letters"}]});
            of_problem(serde_json::from_value(body).expect("a problem"), names).to_string()
        };
        let name = of("/v1/businesses", "validation-failed", "/name", Names::Flags);
        assert!(
            !name.contains("--name") && name.contains("invalid name"),
            "a business's name is no flag: {name}"
        );
        let item = of("/v1/tasks/t3/items/999", "not-found", "", Names::Flags);
        assert!(!item.contains("task list"), "{item}");
        let raw = of("/v1/tasks", "validation-failed", "/rate", Names::Members);
        assert!(!raw.contains("--help"), "{raw}");
    }
}
