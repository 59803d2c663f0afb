//! Merging of the flags typed next to `--resume NAME`: those for the handler change the recorded one, the others are
//! repeated in suggested commands.

use crate::exit::Exit;
use crate::fault::Fault;
use crate::run::args::RunArgs;
use crate::run::handler::request::RequestArgs;

/// Flags of a handler, which are printed with its words.
const OF_HANDLER: [&str; 16] = [
    "--url",
    "--request",
    "--json",
    "--form",
    "--body-file",
    "--secret",
    "--result",
    "--ok",
    "--skip",
    "--retry",
    "--header",
    "--secret-file",
    "--handler-ca-file",
    "--limits-from",
    "--config",
    "--workers",
];
/// Flags that select the job.
const OF_JOB: [&str; 2] = ["--resume", "--state"];
/// Flags with files relative to the directory in which they were typed.
const FILES: [&str; 2] = ["--results-out", "--failures-out"];

/// Overrides the recorded handler with the flags of the command.
///
/// # Errors
/// `Usage` for a flag that doesn't apply to such a handler.
pub(super) fn over(kept: &mut RunArgs, given: &RunArgs) -> Result<(), Fault> {
    if given.workers.is_some() && kept.worker.is_empty() {
        let because = "it applies to a command after --, but the job has another handler";
        return Err(Fault::new(Exit::Usage, "can't use --workers", because).hint("omit it"));
    }
    if given.each.allow_dashes && kept.each.each.is_none() {
        let because = "it applies to --each, but the job has another handler";
        return Err(Fault::new(Exit::Usage, "can't use --allow-dashes", because).hint("omit it"));
    }
    kept.each.allow_dashes |= given.each.allow_dashes;
    if !given.each.unavailable_exit.is_empty() {
        if kept.each.each.is_none() {
            let because = "it applies to --each, but the job has another handler";
            let what = "can't use --unavailable-exit";
            return Err(Fault::new(Exit::Usage, what, because).hint("omit it"));
        }
        kept.each
            .unavailable_exit
            .clone_from(&given.each.unavailable_exit);
    }
    if given.results.out.is_some() || given.only_failed {
        kept.results.out = None;
    }
    if given.failures_out.is_some() || given.only_failed {
        kept.failures_out = None;
    }
    kept.workers = given.workers.or(kept.workers);
    replace(&mut kept.config, &given.config);
    replace(&mut kept.http.secret_file, &given.http.secret_file);
    replace(&mut kept.http.handler_ca_file, &given.http.handler_ca_file);
    replace(&mut kept.http.client_cert, &given.http.client_cert);
    replace(&mut kept.http.client_key, &given.http.client_key);
    kept.http.insecure_skip_verify |= given.http.insecure_skip_verify;
    replace(&mut kept.http.limits_from, &given.http.limits_from);
    let header = |text: &str| {
        text.split(':')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    };
    each(&mut kept.http.headers, &given.http.headers, header);
    request(&mut kept.request, &given.request);
    Ok(())
}

fn request(kept: &mut RequestArgs, given: &RequestArgs) {
    if given.json.is_some() || !given.form.is_empty() || given.body_file.is_some() {
        // A request has only one body.
        kept.json.clone_from(&given.json);
        kept.form.clone_from(&given.form);
        kept.body_file.clone_from(&given.body_file);
    }
    let secret = |text: &str| text.split('=').next().unwrap_or_default().to_owned();
    each(&mut kept.secrets, &given.secrets, secret);
    replace(&mut kept.result, &given.result);
    replace(&mut kept.ok, &given.ok);
    replace(&mut kept.skip, &given.skip);
    replace(&mut kept.retry, &given.retry);
}

fn replace<T: Clone>(kept: &mut Option<T>, given: &Option<T>) {
    if given.is_some() {
        kept.clone_from(given);
    }
}

/// Replaces entries by given ones of the same name.
fn each(kept: &mut Vec<String>, given: &[String], name: impl Fn(&str) -> String) {
    let named: Vec<String> = given.iter().map(|text| name(text)).collect();
    kept.retain(|text| !named.contains(&name(text)));
    kept.extend_from_slice(given);
}

/// Returns the other words after `windrow run`: without flags for the job and for its handler.
pub(super) fn rest(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words = words.skip_while(|word| word != "run").skip(1);
    let mut rest = Vec::new();
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag.to_owned(), Some(value.to_owned())),
            _ => (word.clone(), None),
        };
        if OF_HANDLER.contains(&flag.as_str()) || OF_JOB.contains(&flag.as_str()) {
            if value.is_none() {
                words.next();
            }
        } else if FILES.contains(&flag.as_str()) {
            let file = value.or_else(|| words.next()).unwrap_or_default();
            rest.extend([flag, absolute(file)]);
        } else {
            rest.push(word);
        }
    }
    rest
}

/// Makes a file's path absolute, so that the command works in any directory; - is no file.
fn absolute(file: String) -> String {
    match std::path::absolute(&file) {
        Ok(path) if file != "-" => path.display().to_string(),
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> RunArgs {
        RunArgs::read(["run"].iter().chain(words)).expect("a sound command line")
    }

    #[test]
    fn what_is_typed_takes_the_place_of_what_is_kept_and_the_rest_stays() {
        let mut kept = args(&[
            "--total=1",
            "--request=POST http://h/{index}",
            "--json={}",
            "--header=x-a: 1",
            "--header=x-b: 2",
            "--secret=t=@old",
            "--ok=200",
            "--result=/id",
        ]);
        let given = args(&[
            "--resume=push",
            "--skip=409",
            "--ok=200-299",
            "--form=a={index}",
            "--header=X-A: 3",
            "--secret=t=@new",
        ]);
        over(&mut kept, &given).expect("fits");
        let request = &kept.request;
        assert_eq!(kept.http.headers, ["x-b: 2", "X-A: 3"]);
        assert_eq!(
            (&request.json, &request.form[..]),
            (&None, &["a={index}".to_owned()][..])
        );
        assert_eq!(
            (&request.secrets[..], request.result.as_deref()),
            (&["t=@new".to_owned()][..], Some("/id"))
        );
        let codes = [&request.ok, &request.skip].map(|codes| codes.as_ref().map(ToString::to_string));
        assert_eq!(codes, [Some("200-299".to_owned()), Some("409".to_owned())]);
        assert_eq!(request.request.as_deref(), Some("POST http://h/{index}"));
    }

    #[test]
    fn workers_are_of_a_command_only() {
        let mut kept = args(&["--total=1", "--url=http://h/"]);
        let fault = over(&mut kept, &args(&["--resume=push", "--workers=3"])).expect_err("no command");
        assert_eq!(fault.exit, Exit::Usage);
    }

    #[test]
    fn dashes_are_allowed_to_the_program_of_a_job_that_has_one() {
        let given = args(&["--resume=push", "--only-failed", "--allow-dashes"]);
        let mut kept = args(&["--total=1", "--each=rm {name}"]);
        over(&mut kept, &given).expect("it has a program");
        assert!(kept.each.allow_dashes);
        let mut kept = args(&["--total=1", "--url=http://h/"]);
        let fault = over(&mut kept, &given).expect_err("no program");
        assert_eq!(fault.exit, Exit::Usage);
    }

    #[test]
    fn the_rest_of_a_command_is_neither_its_job_nor_its_handler() {
        let typed =
            "-v run --resume push --only-failed --ok 200 --header=x:1 --results-out - -o json --state d";
        let typed = typed.split(' ').map(str::to_owned);
        assert_eq!(rest(typed), ["--only-failed", "--results-out", "-", "-o", "json"]);
    }
}
