//! Hints for a job that stopped by itself.

use windrow_core::task::lifecycle::StopReason;

/// Returns the hint for a task that stopped by itself because of `why`. `resume` is the command that resumes it.
pub(super) fn hint(reason: StopReason, why: &str, resume: &str) -> String {
    let first = match reason {
        StopReason::ErrorBudget => "check the failures, fix the handler or raise --error-budget; ",
        StopReason::ItemExhausted => "fix the cause, or use --on-exhausted fail; ",
        StopReason::HandlerUnreachable => {
            return format!(
                "start the handler, or correct its URL, certificate or command; no attempt was \
                    counted; {resume}, --wait waits for the handler"
            );
        }
        StopReason::NoItemSucceeds => "check the handler's log and fix it; ",
        StopReason::LimitReached => "give a higher --limit; ",
        StopReason::CostUnknown => "say with --cost-from where the answer has its cost; ",
        StopReason::ReduceFailed => "fix the --reduce handler (the previous generation stays current); ",
        StopReason::HandlerGone | StopReason::HandlerRejected => refused(why),
        StopReason::SourceChanged => {
            return "restore the old content and resume, or start over with --restart".to_owned();
        }
        StopReason::CheckpointCorrupt => {
            return "restore the state directory from a backup, or start over with --restart".to_owned();
        }
        StopReason::RecoveriesExhausted | StopReason::CrashLoop => {
            "check the failures and the output of -v, fix the handler; "
        }
        StopReason::Operator | StopReason::Business | StopReason::CanaryDone | StopReason::Deadline => "",
    };
    format!("{first}{resume}")
}

/// Returns the advice for a handler that can't be used. Often the flags are wrong, not the handler.
fn refused(why: &str) -> &'static str {
    let has = |text: &str| why.contains(text);
    if has(" has no output: ") {
        "check --result against the response; "
    } else if has("no request could be ") {
        "fix the template; "
    } else if has("HTTP_401") || has("HTTP_403") {
        "check the token: --secret, --header, or what the handler expects; "
    } else if has("COMMAND_NOT_STARTED") {
        "check the command, its files and its output; "
    } else {
        "compare requests and responses with `windrow try`, fix the handler; "
    }
}
