//! What workers write down, as they do it: each sends its lines over a connection, whose end is the worker's end.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A line of one worker, or its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// The worker with this process id began.
    Began(u32),
    /// It got an item.
    Got(u64),
    /// It is about to say that an item is done.
    Done(u64),
    /// It was told that an item took too long.
    Cancelled(u64),
    /// The process is no more.
    Gone,
}

/// The entries of all workers in the order of their arrival, each with the number of its worker from 0 on.
pub(crate) struct Diary {
    address: SocketAddr,
    entries: watch::Receiver<Vec<(usize, Entry)>>,
}

impl Diary {
    pub(crate) async fn open() -> Diary {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (sender, entries) = watch::channel(Vec::new());
        tokio::spawn(async move {
            let mut workers = 0..;
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(read(stream, workers.next().expect("endless"), sender.clone()));
            }
        });
        Diary { address, entries }
    }

    /// The worker's command line, without its options.
    pub(crate) fn worker(&self) -> [String; 4] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/crash/diary.py");
        [
            "--".to_owned(),
            "python3".to_owned(),
            script.to_owned(),
            self.address.port().to_string(),
        ]
    }

    pub(crate) fn entries(&self) -> Vec<(usize, Entry)> {
        self.entries.borrow().clone()
    }

    /// Waits until so many entries fulfil this.
    pub(crate) async fn until(&self, count: usize, what: impl Fn(&Entry) -> bool) {
        let enough = |all: &Vec<(usize, Entry)>| all.iter().filter(|(_, entry)| what(entry)).count() >= count;
        drop(
            self.entries
                .clone()
                .wait_for(enough)
                .await
                .expect("the diary is open"),
        );
    }

    /// Waits until no worker lives.
    pub(crate) async fn closed(&self) {
        let ends = |all: &Vec<(usize, Entry)>, end: bool| {
            let of_kind = |entry: &Entry| match entry {
                Entry::Began(_) => !end,
                Entry::Gone => end,
                _ => false,
            };
            all.iter().filter(|(_, entry)| of_kind(entry)).count()
        };
        let closed = |all: &Vec<_>| ends(all, true) == ends(all, false);
        drop(
            self.entries
                .clone()
                .wait_for(closed)
                .await
                .expect("the diary is open"),
        );
    }
}

async fn read(stream: TcpStream, worker: usize, entries: watch::Sender<Vec<(usize, Entry)>>) {
    let mut lines = BufReader::new(stream).lines();
    // A worker that is killed may reset its connection instead of closing it.
    while let Ok(Some(line)) = lines.next_line().await {
        entries.send_modify(|all| all.push((worker, entry(&line))));
    }
    entries.send_modify(|all| all.push((worker, Entry::Gone)));
}

fn entry(line: &str) -> Entry {
    let (what, number) = line.split_once(' ').expect("a word and a number");
    let index = number.parse().expect("a number");
    match what {
        "began" => Entry::Began(number.parse().expect("a process id")),
        "got" => Entry::Got(index),
        "done" => Entry::Done(index),
        "cancelled" => Entry::Cancelled(index),
        other => panic!("not a line of a diary: {other}"),
    }
}
