//! Polling of the log for lines stored since the last poll.
//!
//! Neither times nor numbers tell which lines are new. A line may be stored a little after it was written, and among
//! lines of different tasks a lower number may appear after a higher one. So each poll reaches some time further back
//! than the one before, and a line is new if it wasn't there then.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use super::lines::{self, Line};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, Paging};
use crate::output::screen;
use crate::output::table::times::written;
use windrow_client::Request;

/// Interval between two polls.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum delay between writing and storing a line. (Nodes flush the log every second; a store that hangs delays it
/// by less than this.) Unit: milliseconds.
const STORED_LATE_MS: i64 = 60_000;

/// Position up to which the log has been read.
pub(super) struct Place {
    /// Numbers of the lines found by the last poll, as far back as it reached.
    seen: BTreeSet<i64>,
    /// Time of the oldest wanted line. Unit: milliseconds since 1970.
    from: Option<i64>,
    /// Time of the last poll by the node's clock. Unit: milliseconds since 1970.
    now_ms: i64,
}

impl Place {
    /// Returns the present end of the log: lines that exist now aren't new.
    ///
    /// # Errors
    /// Same as [`Link::send`].
    pub(super) async fn end(link: &Link<'_>, request: &Request, from: Option<i64>) -> Result<Place, Fault> {
        // The reach of a poll is measured by the node's clock, which each answer contains.
        let one = Paging::first(NonZeroU32::MIN);
        let now_ms = link.list(request.clone(), Some(&one)).await?.now_ms;
        let seen = BTreeSet::new();
        let mut place = Place { seen, from, now_ms };
        place.look(link, request).await?;
        Ok(place)
    }

    /// Marks lines that have already been shown.
    pub(super) fn pass(&mut self, shown: &[Line]) {
        self.seen.extend(shown.iter().map(|shown| shown.line.number));
    }

    async fn look(&mut self, link: &Link<'_>, request: &Request) -> Result<Vec<Line>, Fault> {
        let back = self.now_ms.saturating_sub(STORED_LATE_MS);
        let from = self.from.map_or(back, |from| from.max(back));
        let request = request.clone().query_option("from", written(from));
        let listed = link.list(request, Some(&Paging::ALL)).await?;
        // The answer may come from another node, whose clock is behind: a poll never reaches further back than the
        // one before.
        self.now_ms = self.now_ms.max(listed.now_ms);
        Ok(self.new_of(listed.things()?, |there| there.line.number))
    }

    /// Returns the lines that weren't there before, oldest first.
    fn new_of<T>(&mut self, there: Vec<T>, number: fn(&T) -> i64) -> Vec<T> {
        let before = std::mem::replace(&mut self.seen, there.iter().map(number).collect());
        let mut new = there;
        new.retain(|line| !before.contains(&number(line)));
        new.sort_by_key(number);
        new
    }
}

/// Prints lines as they are stored, until the reader is gone.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn follow(
    link: &Link<'_>,
    request: &Request,
    names_task: bool,
    mut place: Place,
) -> Result<Exit, Fault> {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let new = place.look(link, request).await?;
        let text: String = new
            .iter()
            .map(|line| lines::told(link, line, names_task, place.now_ms))
            .collect();
        if !text.is_empty() && !screen::put_piece(text.as_bytes())? {
            return Ok(Exit::Ok);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_lower_number_that_is_seen_later_is_new_and_none_is_new_twice() {
        let mut place = Place {
            seen: BTreeSet::new(),
            from: None,
            now_ms: 0,
        };
        let mut look = |numbers: &[i64]| place.new_of(numbers.to_vec(), |number| *number);
        assert_eq!(look(&[5, 3]), [3, 5]);
        assert_eq!(look(&[7, 5, 4, 3]), [4, 7], "4 was committed after 5");
        assert_eq!(look(&[7, 5]), [0_i64; 0], "3 and 4 are too old by now");
    }
}
