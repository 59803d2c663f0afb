//! Implementation of `windrow task results`: outputs of items, once or as they arrive.
//!
//! Existing rows never change, and no row is inserted between them later. So a follower continues after the last
//! complete row that it has printed, whichever node answers and however the previous answer ended.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::export::{deliver, is_there, row_form};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, word};
use crate::output::members::OutputMembers;
use crate::output::screen;
use crate::output::table::human;
use crate::shell::Shell;
use crate::task::args::look::ResultsArgs;
use crate::task::args::make::RowForm;
use crate::task::words;
use windrow_client::{ClientError, Request};

/// Number of first outputs examined for the members used as columns.
const COLUMNS_LOOKS: u64 = 100;
/// Interval between two requests for new rows.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest absence of nodes that is waited for. (An upgrade of a cluster, or of the only node.)
const AWAY_MAX: Duration = Duration::from_secs(600);

/// Prints the outputs of items, or writes them to a file.
///
/// # Errors
/// Same as `windrow task export`.
pub(crate) async fn results(args: &ResultsArgs, shell: &Shell) -> Result<Exit, Fault> {
    let out = args.out.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = out.filter(|path| !args.force && path.exists()) {
        return Err(is_there(path));
    }
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let form = row_form(args.format, &link, out);
    warn_of_columns(&link, &id, args).await;
    if args.follow {
        let rows = Rows::new(form, args.after);
        return Follower {
            link,
            id,
            args,
            rows,
            said: String::new(),
        }
        .follow()
        .await;
    }
    let request = request(args, form, &id, args.after);
    let given = deliver(&link, request, (out, args.force)).await;
    let exit = given.map_err(|fault| fault.renaming("--key-column", "--data"))?;
    if !args.with_redrives && link.look.form.is_for_people() {
        tell_of_redrives(&link, &id).await;
    }
    Ok(exit)
}

/// Row of results, parsed only to examine its columns.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    output: &'a RawValue,
}

/// Warns of columns that none of the first outputs has. A failed request is ignored, since the rows themselves will
/// report it.
async fn warn_of_columns(link: &Link<'_>, id: &str, args: &ResultsArgs) {
    let Some(columns) = &args.columns else { return };
    let first = Request::get(&format!("/v1/tasks/{id}/results"))
        .query("format", "ndjson")
        .query("limit", COLUMNS_LOOKS)
        .query_option("after", args.after)
        .query_option("with_redrives", args.with_redrives.then_some(true))
        .accept("*/*");
    let Ok(mut download) = link.client.download(first).await else {
        return;
    };
    let mut rows = Vec::new();
    while let Ok(Some(piece)) = download.chunk().await {
        rows.extend_from_slice(&piece);
    }
    let mut members = OutputMembers::new(columns);
    let rows = rows.split(|byte| *byte == b'\n');
    for row in rows.filter_map(|row| serde_json::from_slice::<Row>(row).ok()) {
        members.see(row.output.get());
    }
    if let Some(missing) = members.missing() {
        link.must_say(&format!("warning: {}", missing.of_first(COLUMNS_LOOKS)));
    }
}

/// Mentions the flag that adds results of redrives. A failed request is ignored, since the rows are printed already.
async fn tell_of_redrives(link: &Link<'_>, id: &str) {
    let Ok(answer) = link.get(&format!("/v1/tasks/{id}")).await else {
        return;
    };
    let Ok(task) = answer.read() else { return };
    if let Some(good) = words::recovered(&task).filter(|good| *good > 0) {
        let items = human::counted(good, "item");
        link.hint(&format!(
            "redrives recovered {items}: --with-redrives includes their results in these rows"
        ));
    }
}

fn request(args: &ResultsArgs, form: RowForm, id: &str, after: Option<u64>) -> Request {
    Request::get(&format!("/v1/tasks/{id}/results"))
        .query("format", word(&form))
        .query_option("after", after)
        .query_option("with_redrives", args.with_redrives.then_some(true))
        .query_option("data", args.data.as_deref())
        .query_option("columns", args.columns.as_deref())
        .query_option("csv_guard", args.remote.view.csv_guard.asked())
        .accept("*/*")
}

/// Result of one request for rows.
enum Seen {
    More,
    Over,
}

struct Follower<'a> {
    link: Link<'a>,
    id: String,
    args: &'a ResultsArgs,
    rows: Rows,
    /// Last message about the task.
    said: String,
}

impl Follower<'_> {
    async fn follow(mut self) -> Result<Exit, Fault> {
        // Don't wait for a node that never answered.
        let (mut away, mut was_there): (Option<Instant>, bool) = (None, false);
        loop {
            match self.look().await {
                Ok(Seen::Over) => return Ok(Exit::Ok),
                Ok(Seen::More) => {
                    was_there = true;
                    if away.take().is_some() {
                        self.link.say("the node is back");
                    }
                }
                Err(Trouble::Ours(fault)) => return Err(fault),
                Err(Trouble::Node(error)) => {
                    let since = away.unwrap_or_else(Instant::now);
                    if !was_there || !error.is_passing() || since.elapsed() > AWAY_MAX {
                        return Err(error.into());
                    }
                    if away.replace(since).is_none() {
                        self.link.say("the node is unreachable; retrying every second");
                    }
                }
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Prints new rows. Fetches the task first: rows that exist at its end are complete.
    async fn look(&mut self) -> Result<Seen, Trouble> {
        let task = self
            .link
            .client
            .send(Request::get(&format!("/v1/tasks/{}", self.id)))
            .await?;
        let status = task.read::<api::Task>()?.status;
        let mut download = self
            .link
            .client
            .download(request(self.args, self.rows.form, &self.id, self.rows.after))
            .await?;
        self.rows.begin();
        let mut screen = screen::Foreign::default();
        while let Some(piece) = download.chunk().await? {
            let whole = self.rows.whole(&piece);
            if !whole.is_empty() && !screen.put(&whole)? {
                return Ok(Seen::Over);
            }
        }
        match status.as_str() {
            "finished" | "cancelled" => return Ok(Seen::Over),
            "stopped" if self.said != status => {
                self.link
                    .say(&format!("{} is stopped; waiting for it to resume", self.id));
            }
            _ => {}
        }
        self.said = status;
        Ok(Seen::More)
    }
}

/// Reason why a request for rows ended early.
enum Trouble {
    Node(ClientError),
    Ours(Fault),
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Trouble {
        Trouble::Node(error)
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Ours(fault)
    }
}

/// Splits answers into complete rows, and records how far they reach.
struct Rows {
    form: RowForm,
    /// Item of the last complete row: its position if rows have one, else its index.
    after: Option<u64>,
    /// Start of a row whose end hasn't arrived.
    half: Vec<u8>,
    /// True if that start is within quotes, where a line break doesn't end a CSV row.
    is_quoted: bool,
    /// Header of a CSV, which every answer starts with but which is printed once.
    header: Option<Vec<u8>>,
    is_header_next: bool,
}

impl Rows {
    fn new(form: RowForm, after: Option<u64>) -> Rows {
        Rows {
            form,
            after,
            half: Vec::new(),
            is_quoted: false,
            header: None,
            is_header_next: false,
        }
    }

    /// Starts with a new answer, which repeats an incomplete row of the last one.
    fn begin(&mut self) {
        self.half.clear();
        self.is_quoted = false;
        self.is_header_next = self.form == RowForm::Csv;
    }

    /// Adds a piece and returns the rows that are now complete.
    fn whole(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(self.half.len() + piece.len());
        for byte in piece {
            self.half.push(*byte);
            self.is_quoted ^= self.form == RowForm::Csv && *byte == b'"';
            if *byte == b'\n' && !self.is_quoted {
                let row = std::mem::take(&mut self.half);
                self.take(row, &mut shown);
            }
        }
        shown
    }

    fn take(&mut self, row: Vec<u8>, shown: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_header_next) {
            if self.header.is_none() {
                shown.extend_from_slice(&row);
            }
            self.header = Some(row);
            return;
        }
        self.after = self.place(&row).or(self.after);
        shown.extend_from_slice(&row);
    }

    fn place(&self, row: &[u8]) -> Option<u64> {
        let row = std::str::from_utf8(row).ok()?;
        match self.form {
            RowForm::Ndjson => {
                // Only these members precede those that may contain any text.
                let head = row.split(",\"data\":").next()?.split(",\"output\":").next()?;
                let of = |name: &str| {
                    let (_, rest) = head.split_once(name)?;
                    rest.split([',', '}']).next()?.parse().ok()
                };
                of("\"position\":").or_else(|| of("\"index\":"))
            }
            RowForm::Csv => {
                let header = std::str::from_utf8(self.header.as_deref()?).ok()?;
                let at = header.split(',').take(3).position(|name| name == "position");
                row.split(',').nth(at.unwrap_or(0))?.parse().ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &mut Rows, pieces: &[&str]) -> String {
        rows.begin();
        let shown: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| rows.whole(piece.as_bytes()))
            .collect();
        String::from_utf8(shown).expect("text")
    }

    #[test]
    fn a_row_that_broke_off_comes_again_and_none_comes_twice() {
        let mut rows = Rows::new(RowForm::Ndjson, None);
        let cut = [
            "{\"index\":0,\"key\":\"s-t1-0\",\"out",
            "put\":1}\n{\"index\":7,\"key\":\"s-t1-7\",\"outpu",
        ];
        assert_eq!(
            shown(&mut rows, &cut),
            "{\"index\":0,\"key\":\"s-t1-0\",\"output\":1}\n"
        );
        assert_eq!(rows.after, Some(0));
        let tricky = "{\"index\":7,\"key\":\"s-t1-7\",\"output\":{\"position\":3}}\n";
        assert_eq!(
            (shown(&mut rows, &[tricky]), rows.after),
            (tricky.to_owned(), Some(7))
        );
    }

    #[test]
    fn a_redrive_is_followed_by_its_positions() {
        let mut rows = Rows::new(RowForm::Ndjson, None);
        shown(
            &mut rows,
            &["{\"index\":90,\"key\":\"s-t1-90\",\"position\":4,\"data\":{\"position\":1},\"output\":1}\n"],
        );
        assert_eq!(rows.after, Some(4));
        let mut rows = Rows::new(RowForm::Csv, None);
        shown(&mut rows, &["index,key,position,output\r\n90,s-t1-90,5,1\r\n"]);
        assert_eq!(rows.after, Some(5));
    }

    #[test]
    fn a_csv_has_one_header_and_rows_of_several_lines() {
        let mut rows = Rows::new(RowForm::Csv, Some(2));
        let header = "index,key,output\r\n";
        assert_eq!(shown(&mut rows, &[header]), header);
        let row = "3,s-t1-3,\"a\r\n9,x,\"\"y\"\"\"\r\n";
        assert_eq!(shown(&mut rows, &[header, row, "5,s-t1-5,\"b\n"]), row);
        assert_eq!(rows.after, Some(3));
        assert_eq!(shown(&mut rows, &[header, "5,s-t1-5,b\r\n"]), "5,s-t1-5,b\r\n");
    }
}
