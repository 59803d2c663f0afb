//! Following the log: what was stored since the last look, over and over.
//!
//! Neither times nor numbers say what is new. A line may be stored a little after it was written; and of lines of different
//! tasks, one with a lower number may be seen after one with a higher. So each look goes a while further back than the one
//! before, and a line is new that wasn't there then.

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

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How much later than written a line may be stored. (Nodes write the log out every second; a store that hangs keeps it
/// for less than this.) Unit: milliseconds.
const STORED_LATE_MS: i64 = 60_000;

/// How far the log is read.
pub(super) struct Place {
    /// The numbers of the lines that were there at the last look, as far back as it went.
    seen: BTreeSet<i64>,
    /// Nothing older is wanted. Unit: milliseconds since 1970.
    from: Option<i64>,
    /// When it was read, by the node's clock. Unit: milliseconds since 1970.
    now_ms: i64,
}

impl Place {
    /// The present end of the log: what is there now is not new.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub(super) async fn end(link: &Link<'_>, request: &Request, from: Option<i64>) -> Result<Place, Fault> {
        // How far a look goes back is counted by the node's clock, which an answer tells.
        let one = Paging::first(NonZeroU32::MIN);
        let now_ms = link.list(request.clone(), Some(&one)).await?.now_ms;
        let seen = BTreeSet::new();
        let mut place = Place { seen, from, now_ms };
        place.look(link, request).await?;
        Ok(place)
    }

    /// These are shown already.
    pub(super) fn pass(&mut self, shown: &[Line]) {
        self.seen.extend(shown.iter().map(|shown| shown.line.number));
    }

    async fn look(&mut self, link: &Link<'_>, request: &Request) -> Result<Vec<Line>, Fault> {
        let back = self.now_ms.saturating_sub(STORED_LATE_MS);
        let from = self.from.map_or(back, |from| from.max(back));
        let request = request.clone().query_option("from", written(from));
        let listed = link.list(request, Some(&Paging::ALL)).await?;
        // Another node may answer, whose clock is behind: a look never goes further back than the one before.
        self.now_ms = self.now_ms.max(listed.now_ms);
        Ok(self.new_of(listed.things()?, |there| there.line.number))
    }

    /// Those of the lines that are there that were not there before, oldest first.
    fn new_of<T>(&mut self, there: Vec<T>, number: fn(&T) -> i64) -> Vec<T> {
        let before = std::mem::replace(&mut self.seen, there.iter().map(number).collect());
        let mut new = there;
        new.retain(|line| !before.contains(&number(line)));
        new.sort_by_key(number);
        new
    }
}

/// Shows lines as they are stored, until nobody reads them any more.
///
/// # Errors
/// As [`Link::send`].
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
