//! Unpacks an upload while it arrives: its rows are counted and indexed, and stored a frame for each block, as `windrow run`
//! keeps them.
//!
//! Decoders read, so an upload has a thread as long as it arrives; there are at most `http.max_uploads`. The thread works
//! in turns, of which there are as many as of other passes: one with a lot to unpack holds the others up for one block at
//! most, and one that waits for its sender or for the store has no turn. Memory: two chunks of the body, some blocks, and
//! what the decoder needs, at most 32 MiB.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::SemaphorePermit;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::fault::IndexError;
use super::packing::Packing;
use super::pass::{IndexProgress, Indexed, index_packed};
use super::receive::{JOBS, Parts, ReceiveError};
use super::spec::Format;
use super::unpack::{MemoryLog, Unpacker};
use super::unpack_error::Expansion;

/// Chunks, and pieces of frames, that wait on either side of the thread.
const WAITING: usize = 2;

/// Takes in a compressed body; the blocks are stored by the time it answers. Cancel safe: the thread ends by itself.
///
/// # Errors
/// See [`ReceiveError`]; what comes out is bounded by what the sender may send.
pub(super) async fn take_in_packed(
    parts: &mut Parts<'_>,
    (format, packing): (&Format, Packing),
    mut body: impl Stream<Item = Result<Bytes, String>> + Send + Unpin,
) -> Result<(Indexed, String), ReceiveError> {
    let most = parts.sender.bytes_max;
    let (chunks, arrived) = mpsc::channel(WAITING);
    let (keep, mut frames) = mpsc::channel(WAITING);
    let ending = EndOnDrop::default();
    let pass = UnpackingPass {
        packing,
        format: format.clone(),
        unpacked_max: most,
        is_ended: ending.0.clone(),
        turn: Turn::new(Handle::current()),
    };
    let thread = tokio::task::spawn_blocking(move || pass.run(arrived, keep));
    let feed = async move {
        let mut bytes = 0_u64;
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(ReceiveError::Broken)?;
            bytes += chunk.len() as u64;
            if bytes > most {
                return Err(ReceiveError::TooLarge(most));
            }
            // Nobody listens any more: the thread says why.
            if chunks.send(Fed::Chunk(chunk)).await.is_err() {
                return Ok(());
            }
        }
        chunks.send(Fed::End).await.ok();
        Ok(())
    };
    let store = async {
        while let Some(piece) = frames.recv().await {
            parts.add(piece).await?;
        }
        Ok::<(), ReceiveError>(())
    };
    tokio::select! {
        stored = store => stored?,
        Err(error) = feed => return Err(error),
    }
    let done = thread.await;
    done.unwrap_or_else(|error| Err(IndexError::Unreadable(io::Error::other(error)).into()))
}

/// What the thread is sent.
enum Fed {
    Chunk(Bytes),
    End,
}

/// Ends the thread when nobody waits for it any more.
#[derive(Default)]
struct EndOnDrop(Arc<AtomicBool>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the thread does.
struct UnpackingPass {
    packing: Packing,
    format: Format,
    /// Unit: bytes.
    unpacked_max: u64,
    is_ended: Arc<AtomicBool>,
    turn: Turn,
}

impl UnpackingPass {
    fn run(self, chunks: Receiver<Fed>, keep: Sender<Bytes>) -> Result<(Indexed, String), ReceiveError> {
        let (turn, hash, is_too_large) = (&self.turn, RefCell::new(Sha256::new()), Cell::new(false));
        turn.next();
        let arrived = Arrived {
            chunks,
            chunk: Bytes::new(),
            has_all: false,
            hash: &hash,
            turn,
        };
        let unpacker = Unpacker::new(self.packing, arrived, Expansion::default(), MemoryLog::SENT);
        let unpacker = unpacker.map_err(IndexError::Unreadable)?;
        let progress = &mut |so_far: IndexProgress| {
            if so_far.bytes > self.unpacked_max {
                is_too_large.set(true);
                self.is_ended.store(true, Ordering::Relaxed);
            }
            turn.next();
        };
        let keep = &mut Kept { keep, turn };
        let indexed = index_packed(unpacker, &self.format, keep, progress, &self.is_ended);
        if is_too_large.get() {
            return Err(ReceiveError::UnpacksTooLarge(self.unpacked_max));
        }
        let sha256 = hash.into_inner().finalize();
        Ok((
            indexed?,
            sha256.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }
}

/// The right to work now.
struct Turn {
    runtime: Handle,
    held: Cell<Option<SemaphorePermit<'static>>>,
}

impl Turn {
    fn new(runtime: Handle) -> Turn {
        let held = Cell::new(None);
        Turn { runtime, held }
    }

    /// Lets those go first who wait; they do so in the order in which they came.
    fn next(&self) {
        self.held.set(None);
        // It is never closed.
        self.held.set(self.runtime.block_on(JOBS.acquire()).ok());
    }

    /// Waits for something else meanwhile.
    fn pause<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.held.set(None);
        let waited = wait();
        self.next();
        waited
    }
}

/// The body, as a decoder reads it. It has an end only if its sender said so.
struct Arrived<'a> {
    chunks: Receiver<Fed>,
    chunk: Bytes,
    has_all: bool,
    hash: &'a RefCell<Sha256>,
    turn: &'a Turn,
}

impl Read for Arrived<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() && !self.has_all {
            // A turn for each chunk: there are bytes from which nothing comes, however many they are.
            match self.turn.pause(|| self.chunks.blocking_recv()) {
                Some(Fed::Chunk(chunk)) => {
                    self.hash.borrow_mut().update(&chunk);
                    self.chunk = chunk;
                }
                Some(Fed::End) => self.has_all = true,
                None => return Err(io::Error::other("its sender went away")),
            }
        }
        let read = self.chunk.len().min(buffer.len());
        self.chunk.copy_to_slice(&mut buffer[..read]);
        Ok(read)
    }
}

/// Where compressed blocks go.
struct Kept<'a> {
    keep: Sender<Bytes>,
    turn: &'a Turn,
}

impl Write for Kept<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            let piece = Bytes::copy_from_slice(bytes);
            let sent = self.turn.pause(|| self.keep.blocking_send(piece));
            sent.map_err(|_| io::Error::other("nobody keeps it"))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
