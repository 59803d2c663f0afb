//! Following the log: what was stored since the last look, over and over.
//!
//! Lines are told apart by their numbers, which grow in the order in which they are stored. Their times don't: a line
//! may be stored a little after it was written, so each look goes a while further back than the one before.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{lines, number, written};
use crate::cli::exit::Exit;
use crate::cli::fault::Fault;
use crate::cli::remote::{Link, Paging};
use crate::cli::screen;
use crate::client::Request;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How much later than written a line may be stored. (Nodes write the log out every second; a store that hangs keeps it
/// for less than this.) Unit: milliseconds.
const STORED_LATE_MS: i64 = 60_000;

/// How far the log is read.
pub(super) struct Place {
    /// The number of the last line that was shown.
    pub(super) last: i64,
    /// Nothing older is wanted. Unit: milliseconds since 1970.
    pub(super) from: Option<i64>,
    /// When it was read, by the node's clock. Unit: milliseconds since 1970.
    pub(super) now_ms: i64,
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
    let all = Paging { limit: NonZeroU32::MIN, all: true };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let back = place.now_ms.saturating_sub(STORED_LATE_MS);
        let from = place.from.map_or(back, |from| from.max(back));
        let listed = link.list(request.clone().query_option("from", written(from)), Some(&all)).await?;
        let mut new = listed.things()?;
        new.retain(|line| number(line) > place.last);
        new.sort_by_key(number);
        place.now_ms = listed.now_ms;
        place.last = new.last().map_or(place.last, number);
        let text: String = new.iter().map(|line| lines::told(link, line, names_task, place.now_ms)).collect();
        if !text.is_empty() && !screen::put_piece(text.as_bytes())? {
            return Ok(Exit::Ok);
        }
    }
}
