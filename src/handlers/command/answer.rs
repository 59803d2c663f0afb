//! Outcome of each item, and the combination of a call's outcomes into one reply.

use crate::usage::sum;
use windrow_core::execution::Usage;
use windrow_core::ids::ItemIndex;
use windrow_core::items::verdict::{Failure, FailureClass, HandlerCommand, Outcome, RetryAdvice};
use windrow_engine::ports::handling::handler::{CallFailure, ItemReplies, ItemVerdict, LogLine, Reply};

/// Outcome of an item, by the source of the judgement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// Verdict given by the worker.
    Said(ItemVerdict),
    /// The worker timed out or crashed, so it is unknown what happened to the item.
    Lost(Failure),
    /// The program of the item exited with a code that has no meaning of its own.
    Exited(Failure),
    /// The program exited with a code for something it needs that is not available now.
    Unavailable(Failure),
    /// No worker can be started now, though one could before.
    Unreached(Failure),
    /// The worker's answer could not be understood.
    BadReply(Failure),
    /// The command itself does not work.
    Rejected(Failure),
    /// No worker lives long enough to take an item.
    Unstarted(Failure),
    /// The item never reached a worker.
    NotSent,
}

/// Outcome of an item, with the worker's commands and log lines.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) judged: Judged,
    pub(crate) commands: Vec<HandlerCommand>,
    pub(crate) logs: Vec<LogLine>,
    /// Costs that the worker named, by meter; empty if nothing is counted.
    pub(crate) used: Usage,
}

impl From<Judged> for Answer {
    fn from(judged: Judged) -> Answer {
        Answer {
            judged,
            commands: Vec::new(),
            logs: Vec::new(),
            used: Usage::new(),
        }
    }
}

/// Combines all answers into one reply. A failure that all items share, without commands or log lines, becomes one of
/// the call: so three bad replies in a row are noticed, and one bad reply among good ones costs only its own item.
pub(crate) fn into_reply(mut answers: Vec<(ItemIndex, Answer)>) -> Reply {
    let used = sum(answers
        .iter_mut()
        .map(|(_, answer)| std::mem::take(&mut answer.used)));
    combined(answers).with_use(used)
}

fn combined(answers: Vec<(ItemIndex, Answer)>) -> Reply {
    let plain = Judged::Said(ItemVerdict::Settled(Outcome::Succeeded));
    let wordless = answers
        .iter()
        .all(|(_, answer)| answer.commands.is_empty() && answer.logs.is_empty());
    if wordless && answers.iter().all(|(_, answer)| answer.judged == plain) {
        return Reply::AllOk;
    }
    let shared = answers
        .first()
        .and_then(|(_, answer)| as_call_failure(&answer.judged))
        .filter(|first| wordless && answers.iter().all(|(_, answer)| is_like(&answer.judged, first)));
    match shared {
        Some(failure) => Reply::Failed(Box::new(failure)),
        None => Reply::Items(Box::new(item_by_item(answers))),
    }
}

fn as_call_failure(judged: &Judged) -> Option<CallFailure> {
    match judged {
        Judged::Said(_) => None,
        Judged::Lost(failure) => Some(failed(FailureClass::Unclear, failure)),
        Judged::Exited(failure) => Some(failed(FailureClass::Exited, failure)),
        Judged::Unavailable(failure) => Some(failed(FailureClass::Unavailable, failure)),
        Judged::Unreached(failure) => Some(failed(FailureClass::Unreachable, failure)),
        Judged::BadReply(failure) => Some(CallFailure::BadReply(failure.clone())),
        Judged::Rejected(failure) => Some(CallFailure::Rejected(failure.clone())),
        Judged::Unstarted(failure) => Some(CallFailure::Unstarted(failure.clone())),
        Judged::NotSent => Some(CallFailure::NotSent),
    }
}

fn failed(class: FailureClass, failure: &Failure) -> CallFailure {
    CallFailure::Failed {
        class,
        failure: failure.clone(),
        after: None,
    }
}

fn is_like(judged: &Judged, shared: &CallFailure) -> bool {
    match (judged, shared) {
        (Judged::BadReply(_), CallFailure::BadReply(_))
        | (Judged::Rejected(_), CallFailure::Rejected(_))
        | (Judged::Unstarted(_), CallFailure::Unstarted(_))
        | (Judged::NotSent, CallFailure::NotSent) => true,
        (
            Judged::Lost(failure)
            | Judged::Exited(failure)
            | Judged::Unavailable(failure)
            | Judged::Unreached(failure),
            CallFailure::Failed { failure: other, .. },
        ) => failure == other,
        _ => false,
    }
}

fn item_by_item(answers: Vec<(ItemIndex, Answer)>) -> ItemReplies {
    let mut replies = ItemReplies::default();
    for (index, answer) in answers {
        replies.verdicts.push((index, as_verdict(answer.judged)));
        replies.commands.extend(answer.commands);
        replies.logs.extend(answer.logs);
    }
    replies
}

fn as_verdict(judged: Judged) -> ItemVerdict {
    let failure = match judged {
        Judged::Said(verdict) => return verdict,
        Judged::Lost(failure) => return ItemVerdict::Unclear(failure),
        Judged::Exited(failure)
        | Judged::Unavailable(failure)
        | Judged::Unreached(failure)
        | Judged::BadReply(failure)
        | Judged::Rejected(failure)
        | Judged::Unstarted(failure) => failure,
        Judged::NotSent => Failure::new(
            "NOT_SENT",
            "no worker became free in time for this item of the batch",
        ),
    };
    ItemVerdict::Failed {
        failure,
        advice: RetryAdvice::Retry { after: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(judged: Vec<Judged>) -> Reply {
        let answers = judged.into_iter().enumerate();
        into_reply(
            answers
                .map(|(at, judged)| (ItemIndex(at as u64), judged.into()))
                .collect(),
        )
    }

    fn ok() -> Judged {
        Judged::Said(ItemVerdict::Settled(Outcome::Succeeded))
    }

    #[test]
    fn a_failure_that_all_items_share_is_one_of_the_call() {
        let bad = || Judged::BadReply(Failure::new("BAD_REPLY", "x"));
        assert_eq!(reply(vec![ok(), ok()]), Reply::AllOk);
        assert!(
            matches!(reply(vec![bad(), bad()]), Reply::Failed(failure) if matches!(*failure, CallFailure::BadReply(_)))
        );
        let Reply::Items(items) = reply(vec![bad(), ok()]) else {
            panic!("a verdict per item was expected")
        };
        assert!(matches!(
            &items.verdicts[0].1,
            ItemVerdict::Failed {
                advice: RetryAdvice::Retry { .. },
                ..
            }
        ));
        assert_eq!(items.verdicts[1].1, ItemVerdict::Settled(Outcome::Succeeded));
    }

    #[test]
    fn different_losses_keep_their_own_words() {
        let lost = |code: &'static str| Judged::Lost(Failure::new(code, "x"));
        assert!(matches!(reply(vec![lost("A"), lost("A")]), Reply::Failed(_)));
        assert!(matches!(reply(vec![lost("A"), lost("B")]), Reply::Items(_)));
    }

    #[test]
    fn a_command_survives_whatever_became_of_the_item() {
        let lost = Answer {
            commands: vec![HandlerCommand::Stop {
                reason: "x".to_owned(),
            }],
            ..Answer::from(Judged::Lost(Failure::new("A", "x")))
        };
        let Reply::Items(items) = into_reply(vec![(ItemIndex(0), lost)]) else {
            panic!("words were expected")
        };
        assert_eq!(items.commands.len(), 1);
    }
}
