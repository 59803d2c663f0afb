//! Writer of a worker's stdin: one write for all lines that wait, and a watch on the worker's reading.
//!
//! Never waits for an answer. Closing the queue closes stdin once all lines are written.

use std::time::Duration;

use rustix::io::ioctl_fionread;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, watch};

/// First pause between two checks for unread bytes; doubles up to [`LOOK_PAUSE_MAX`].
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(1);
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(16);
/// Approximate size up to which lines are joined, in bytes: the size of a pipe on Linux.
const JOINED_BYTES_MAX: usize = 64 * 1024;
/// First byte of every line.
const FIRST_BYTE: u8 = b'{';

/// Part of the first lines that the worker has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReadSoFar {
    /// Perhaps not even the hello.
    Nothing,
    /// The hello was read.
    Hello,
    /// The first byte of the next line was read: the worker asks for that line.
    NextLineBegun,
}

/// Writing half of a worker.
pub(super) struct Writer {
    pub(super) stdin: ChildStdin,
    /// Queue of lines, of which the first must be the hello.
    pub(super) lines: mpsc::UnboundedReceiver<String>,
    pub(super) read: watch::Sender<ReadSoFar>,
    /// True to find out, with the first byte of the next line, if the worker asks for it (`handshake`).
    pub(super) probes: watch::Receiver<bool>,
}

impl Writer {
    /// Runs until the queue is closed and written, or until the worker no longer takes lines.
    pub(super) async fn run(mut self) {
        let Some(hello) = self.lines.recv().await else {
            return;
        };
        if !self.put(hello.as_bytes()).await {
            return;
        }
        self.until_read().await;
        self.read.send_replace(ReadSoFar::Hello);
        let mut begun = 0;
        if *self.probes.borrow() && self.lines.is_empty() && !self.lines.is_closed() {
            if !self.put(&[FIRST_BYTE]).await {
                return;
            }
            begun = 1;
            self.until_read().await;
            self.read.send_replace(ReadSoFar::NextLineBegun);
        }
        while let Some(text) = self.next_lines().await {
            debug_assert_eq!(text.as_bytes().first(), Some(&FIRST_BYTE));
            if !self.put(&text.as_bytes()[begun..]).await {
                return;
            }
            begun = 0;
        }
    }

    async fn next_lines(&mut self) -> Option<String> {
        let mut text = self.lines.recv().await?;
        while text.len() < JOINED_BYTES_MAX
            && let Ok(line) = self.lines.try_recv()
        {
            text.push_str(&line);
        }
        Some(text)
    }

    /// Writes a text. Returns false if the worker takes no more lines: it has ended or will be ended by its
    /// supervisor, which sees more than a broken pipe tells.
    async fn put(&mut self, text: &[u8]) -> bool {
        let written = self.stdin.write_all(text).await;
        if let Err(why) = &written {
            tracing::debug!(%why, "worker closed its stdin");
        }
        written.is_ok()
    }

    /// Waits until the pipe is empty (or can't tell), until a line waits, or until no more lines will come.
    async fn until_read(&self) {
        let mut pause = LOOK_PAUSE_MIN;
        while matches!(ioctl_fionread(&self.stdin), Ok(1..))
            && self.lines.is_empty()
            && !self.lines.is_closed()
        {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_PAUSE_MAX);
        }
    }
}
