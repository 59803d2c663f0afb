//! Implementation of `windrow task append`: adds the lines of a file or a pipe to an open task in blocks, as they
//! arrive.
//!
//! Each block has a key, so that one whose answer was lost is sent again but added once. With `--key`, the keys are
//! derived from it and from the block numbers: the same input, divided in the same way, can be sent again after any
//! failure.

use std::time::Duration;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader, Lines};
use tokio::time::timeout;

use crate::exit::Exit;
use crate::fault::{Fault, of_file};
use crate::link::{Form, Link};
use crate::output::screen;
use crate::output::table::{Column, Keep, Listing, human};
use crate::shell::Shell;
use crate::task::args::make::AppendArgs;
use windrow_client::{Answer, Request};

/// Maximum number of items in a block.
const BLOCK_ITEMS: usize = 1_000;
/// Maximum size of a block; a longer line is a block by itself. Unit: bytes.
const BLOCK_BYTES: usize = 512 * 1024;
/// Time that a single line waits for others. With `--key` it waits until the block is full: blocks divided by time
/// couldn't be reproduced.
const LINGER: Duration = Duration::from_millis(200);

/// Block of JSON lines to send.
#[derive(Default)]
struct Block {
    rows: Vec<Box<RawValue>>,
    bytes: usize,
}

impl Block {
    fn is_full(&self) -> bool {
        self.rows.len() >= BLOCK_ITEMS || self.bytes >= BLOCK_BYTES
    }
}

/// Input with the present position.
struct Input {
    lines: Lines<Box<dyn AsyncBufRead + Unpin + Send>>,
    line: u64,
    name: String,
    /// Time that a block waits for more lines; `None` waits until it is full.
    linger: Option<Duration>,
}

/// Appends lines to a task.
///
/// # Errors
/// Fails on a line that isn't JSON, or if the node refuses. Blocks before it have been added, and the fault has their
/// number of items.
pub(crate) async fn append(args: &AppendArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let mut input = Input::open(&args.ndjson, args.key.is_none()).await?;
    let (mut blocks, mut last) = (0_u64, None);
    let mut appended = Appended {
        task: id.clone(),
        ..Appended::default()
    };
    while let Some(block) = input.block().await.map_err(|fault| so_far(fault, &appended))? {
        // Without `--key`, each request has a random key.
        let request = Request::post(&format!("/v1/tasks/{id}/items")).body("application/json", body(&block)?);
        let request = match &args.key {
            Some(key) => request.header("Idempotency-Key", &format!("{key}-{blocks}")),
            None => request,
        };
        let answer = link
            .send(request)
            .await
            .map_err(|fault| so_far(fault, &appended))?;
        let added: api::AppendedItems = answer.read()?;
        if blocks == 0 {
            appended.first_index = added.first_index;
        }
        // Without `--key`, only a retry after a lost answer is repeated, and it belongs to this command.
        if args.key.is_some() && added.repeated {
            appended.repeated += block.rows.len() as u64;
        }
        appended.items += block.rows.len() as u64;
        appended.total = added.total;
        (blocks, last) = (blocks + 1, Some(answer));
    }
    told(&link, appended, last.as_ref())
}

/// Totals of all appended blocks.
#[derive(Default, Serialize)]
struct Appended {
    first_index: u64,
    items: u64,
    /// Items among them that had been appended before.
    repeated: u64,
    task: String,
    total: u64,
}

const APPENDED: Listing<Appended> = Listing {
    columns: &[
        Column::text("TASK", Keep::Always, 4, |appended| &appended.task),
        Column::count("ITEMS", Keep::Always, 5, |appended| Some(appended.items)),
        Column::count("FIRST_INDEX", Keep::Always, 5, |appended| {
            Some(appended.first_index)
        }),
        Column::count("TOTAL", Keep::Always, 5, |appended| Some(appended.total)),
        Column::count("REPEATED", Keep::Always, 5, |appended| Some(appended.repeated)),
    ],
    name: |appended| appended.task.clone(),
    none: "nothing was appended",
};

/// Prints the totals, as of the answer to the last block.
fn told(link: &Link<'_>, appended: Appended, last: Option<&Answer>) -> Result<Exit, Fault> {
    let Some(last) = last else {
        link.say("no lines: nothing was appended");
        return Ok(Exit::Ok);
    };
    let said = match link.look.form {
        Form::Table | Form::Wide => format!(
            "{}  {}; total {}",
            appended.task,
            sentence(appended.items, appended.repeated),
            human::counted(appended.total, "item")
        ),
        Form::Json | Form::Ndjson => {
            serde_json::to_string(&appended).map_err(|error| Fault::bug(error.to_string()))?
        }
        Form::Name => APPENDED.names(&[appended]),
        Form::Csv => APPENDED.csv(&[appended], &link.times(last), link.look.guard.into()),
    };
    screen::put(&said).map(|()| Exit::Ok)
}

/// Returns the numbers of items added now and before.
fn sentence(items: u64, repeated: u64) -> String {
    let (new, old) = (
        human::counted(items - repeated, "item"),
        human::counted(repeated, "item"),
    );
    match (items - repeated, repeated) {
        (_, 0) => format!("{new} appended"),
        (0, _) => format!("nothing appended: {old} already appended with this key"),
        _ => format!("{new} appended, {old} already appended with this key"),
    }
}

/// Returns the body of a block, with its lines as written.
fn body(block: &Block) -> Result<String, Fault> {
    let rows = serde_json::to_string(&block.rows).map_err(|error| Fault::bug(error.to_string()))?;
    Ok(format!("{{\"items\":{rows}}}"))
}

fn so_far(mut fault: Fault, appended: &Appended) -> Fault {
    if appended.items > 0 {
        let before = human::counted(appended.items, "item");
        let task = &appended.task;
        fault
            .because
            .push(format!("appended to {task} before the error: {before}"));
    }
    fault
}

impl Input {
    async fn open(path: &str, lingers: bool) -> Result<Input, Fault> {
        let (reader, name): (Box<dyn AsyncBufRead + Unpin + Send>, _) = if path == "-" {
            (Box::new(BufReader::new(tokio::io::stdin())), "standard input")
        } else {
            let file = tokio::fs::File::open(path)
                .await
                .map_err(|error| unread(path, &of_file(&error)))?;
            (Box::new(BufReader::new(file)), path)
        };
        Ok(Input {
            lines: reader.lines(),
            line: 0,
            name: name.to_owned(),
            linger: lingers.then_some(LINGER),
        })
    }

    /// Reads the next block, or returns `None` at the end.
    async fn block(&mut self) -> Result<Option<Block>, Fault> {
        let mut block = Block::default();
        while !block.is_full() {
            let read = match self.linger.filter(|_| !block.rows.is_empty()) {
                Some(linger) => match timeout(linger, self.lines.next_line()).await {
                    Ok(read) => read,
                    Err(_) => break,
                },
                None => self.lines.next_line().await,
            };
            let Some(line) = read.map_err(|error| unread(&self.name, &of_file(&error)))? else {
                break;
            };
            self.line += 1;
            if !line.trim().is_empty() {
                block.bytes += line.len();
                block.rows.push(self.row(line)?);
            }
        }
        Ok(Some(block).filter(|block| !block.rows.is_empty()))
    }

    fn row(&self, line: String) -> Result<Box<RawValue>, Fault> {
        let is_json = serde_json::from_str::<IgnoredAny>(&line);
        let row = is_json.and_then(|IgnoredAny| RawValue::from_string(line.trim().to_owned()));
        row.map_err(|error| {
            let because = format!("line {} of {} is not JSON: {error}", self.line, self.name);
            Fault::new(Exit::Rejected, "the line isn't an item", because)
                .hint("write one JSON value per line")
        })
    }
}

fn unread(path: &str, why: &str) -> Fault {
    let because = format!("{path}: {why}");
    Fault::new(Exit::Rejected, "can't read the items", because).hint("check the path; - is standard input")
}
