//! Sentences about failures: the grounds for each final failure, and the number that redrives recovered.

use crate::output::table::{Cell, human};

/// Returns the sentence for a failure as the API reports it.
///
/// Older versions didn't count the answers for other items, so the sentence leaves them out.
pub(crate) fn judgement(failure: &api::Failure) -> String {
    let others = failure.others_answered;
    if failure.unconfirmed {
        return match others {
            Some(others @ 1..) => format!(
                "unconfirmed: {}, too few to blame this item",
                answered_meanwhile(others)
            ),
            _ => "unconfirmed: no other call got a response to compare it with".to_owned(),
        };
    }
    let (charged, attempts) = (u64::from(failure.charged), u64::from(failure.attempts));
    let counted = match charged {
        0 => "no attempt counts".to_owned(),
        all if all == attempts => match all {
            1 => "1 attempt, counted".to_owned(),
            all => format!("{} attempts, all counted", human::count(all)),
        },
        _ => format!(
            "{} of {} counted",
            human::count(charged),
            human::counted(attempts, "attempt")
        ),
    };
    match others {
        Some(others @ 1..) => format!("{counted}: {}", answered_meanwhile(others)),
        _ => counted,
    }
}

/// Returns the suffix ` (2 unconfirmed)` for a count of failures, empty if all are confirmed.
pub(crate) fn of_them_unconfirmed(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!(" ({} unconfirmed)", human::count(count)),
    }
}

/// Returns a count of failures with the number that redrives recovered, or the count alone if space is short.
pub(crate) fn with_recovered(failed: Cell, good: u64) -> Cell {
    let short = failed.text.clone();
    Cell {
        text: format!("{short} ({} recovered)", human::count(good)),
        ..failed
    }
    .short(short)
}

/// Returns a clause such as `214 other calls were answered meanwhile`.
fn answered_meanwhile(others: u64) -> String {
    let were = if others == 1 { "was" } else { "were" };
    format!(
        "{} {were} answered meanwhile",
        human::counted(others, "other call")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grounds_are_a_sentence_with_the_right_plurals() {
        let told = |charged: u32, attempts: u32, unconfirmed: bool, others_answered: Option<u64>| {
            judgement(&api::Failure {
                charged,
                attempts,
                unconfirmed,
                others_answered,
                ..Default::default()
            })
        };
        let of_one = "unconfirmed: no other call got a response to compare it with";
        for (sentence, expected) in [
            (
                told(5, 5, false, Some(1214)),
                "5 attempts, all counted: 1,214 other calls were answered meanwhile",
            ),
            (
                told(1, 3, false, Some(1)),
                "1 of 3 attempts counted: 1 other call was answered meanwhile",
            ),
            (told(1, 1, false, Some(0)), "1 attempt, counted"),
            (told(2, 3, false, None), "2 of 3 attempts counted"),
            (told(0, 4, false, Some(0)), "no attempt counts"),
            (told(0, 5, true, Some(0)), of_one),
            (told(0, 5, true, None), of_one),
            (
                told(3, 5, true, Some(3)),
                "unconfirmed: 3 other calls were answered meanwhile, too few to blame this item",
            ),
            (
                told(3, 5, true, Some(1)),
                "unconfirmed: 1 other call was answered meanwhile, too few to blame this item",
            ),
        ] {
            assert_eq!(sentence, expected);
        }
    }
}
