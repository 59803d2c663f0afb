//! Unpacks an upload on arrival: its rows are counted, indexed, and stored with one frame per block, as `windrow run`
//! keeps them.
//!
//! Decoders are blocking readers, so each upload has a thread while it arrives; there are at most `http.max_uploads`.
//! The threads take turns, sharing the limit on jobs with other passes. One with a lot to unpack holds the others up
//! for at most one block, and one waiting for its sender or for the store gives its turn up. Memory: two chunks of
//! the body, some blocks, and the decoder's needs, at most 32 MiB.

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

/// Capacity of the queues of chunks and compressed pieces on either side of the thread.
const WAITING: usize = 2;

/// Receives a compressed body; its blocks are stored when this returns. Cancel safe: the thread ends on its own.
///
/// # Errors
/// See [`ReceiveError`]; the unpacked size has the same limit as the body.
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
            // The thread has ended and will report why.
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

/// Message to the unpacking thread.
enum Fed {
    Chunk(Bytes),
    End,
}

/// Guard that ends the thread when its waiter is dropped.
#[derive(Default)]
struct EndOnDrop(Arc<AtomicBool>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Work of the unpacking thread.
struct UnpackingPass {
    packing: Packing,
    format: Format,
    /// Limit on the unpacked size, in bytes.
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

/// Permit to work now, shared with other passes.
struct Turn {
    runtime: Handle,
    held: Cell<Option<SemaphorePermit<'static>>>,
}

impl Turn {
    fn new(runtime: Handle) -> Turn {
        let held = Cell::new(None);
        Turn { runtime, held }
    }

    /// Lets waiting passes go first, in order of arrival.
    fn next(&self) {
        self.held.set(None);
        // Never fails: the semaphore is never closed.
        self.held.set(self.runtime.block_on(JOBS.acquire()).ok());
    }

    /// Gives the turn up while waiting for something else.
    fn pause<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.held.set(None);
        let waited = wait();
        self.next();
        waited
    }
}

/// Body as a blocking reader. It ends only if the sender sent its end.
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
            // One turn per chunk, because any number of bytes may unpack to nothing.
            match self.turn.pause(|| self.chunks.blocking_recv()) {
                Some(Fed::Chunk(chunk)) => {
                    self.hash.borrow_mut().update(&chunk);
                    self.chunk = chunk;
                }
                Some(Fed::End) => self.has_all = true,
                None => return Err(io::Error::other("the sender disconnected")),
            }
        }
        let read = self.chunk.len().min(buffer.len());
        self.chunk.copy_to_slice(&mut buffer[..read]);
        Ok(read)
    }
}

/// Writer of the compressed blocks.
struct Kept<'a> {
    keep: Sender<Bytes>,
    turn: &'a Turn,
}

impl Write for Kept<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            let piece = Bytes::copy_from_slice(bytes);
            let sent = self.turn.pause(|| self.keep.blocking_send(piece));
            sent.map_err(|_| io::Error::other("the receiver is gone"))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
