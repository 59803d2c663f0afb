//! Hints for a job that stopped by itself.

use windrow_core::task::lifecycle::StopReason;

/// Returns the hint for a task that stopped by itself. `resume` is the command that resumes it.
pub(super) fn hint(reason: StopReason, resume: &str) -> String {
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
        StopReason::ReduceFailed => "fix the --reduce handler (the previous generation stays current); ",
        StopReason::HandlerGone | StopReason::HandlerRejected => {
            "compare requests and responses with `windrow try`, fix the handler; "
        }
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
