//! Hints for a job that stopped by itself.

use windrow_core::task::lifecycle::StopReason;

/// Returns the hint for a task that stopped by itself. `resume` is the command that resumes it.
pub(super) fn hint(reason: StopReason, resume: &str) -> String {
    let first = match reason {
        StopReason::ErrorBudget => "look at the failures, fix the handler or raise --error-budget; ",
        StopReason::ItemExhausted => "fix what the item needs, or --on-exhausted fail; ",
        StopReason::HandlerUnreachable => {
            return format!(
                "start the handler, or correct what is said of it (--url, its certificate, the command); nothing was \
                 charged, {resume}, and --wait waits for it"
            );
        }
        StopReason::NoItemSucceeds => "look at the handler's own log, fix it; ",
        StopReason::ReduceFailed => "fix what --reduce runs or calls (the generation before stays current); ",
        StopReason::HandlerGone | StopReason::HandlerRejected => {
            "see with `windrow try` what is sent and what comes back, fix it; "
        }
        StopReason::SourceChanged => {
            return "bring the old content back and resume, or begin anew with --restart".to_owned();
        }
        StopReason::CheckpointCorrupt => {
            return "bring the state directory back from a backup, or begin anew with --restart".to_owned();
        }
        StopReason::RecoveriesExhausted | StopReason::CrashLoop => {
            "look at the failures and at -v, fix the handler; "
        }
        StopReason::Operator | StopReason::Business | StopReason::CanaryDone | StopReason::Deadline => "",
    };
    format!("{first}{resume}")
}
