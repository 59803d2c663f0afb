//! Input and output of a process, bounded in size.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

use memchr::memchr;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::command::stderr::{LINE_BYTES_MAX, Notes, Tail};
use crate::wire::shown;
use windrow_core::ids::ItemIndex;
use windrow_core::items::verdict::cut;

/// Number of bytes that a pipe takes at once even if its user has too many pipes (pipe(7)).
const PIPE_BYTES_SURE: usize = 4096;
/// Maximum number of bytes kept of stdout: more than an output may have, since JSON gets shorter without its white
/// space.
const STDOUT_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of bytes per read.
const READ_BYTES: usize = 16 * 1024;

/// Provides the row as a line before the process starts: nobody has to write while it runs, and it need not read.
pub(super) fn stdin(data: Option<&str>) -> io::Result<Stdio> {
    let Some(data) = data else {
        return Ok(Stdio::null());
    };
    let line = format!("{data}\n");
    if line.len() <= PIPE_BYTES_SURE {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        io::PipeWriter::from(writer).write_all(line.as_bytes())?;
        return Ok(reader.into());
    }
    let mut file = std::fs::File::from(memfd_create("windrow-row", MemfdFlags::CLOEXEC)?);
    file.write_all(line.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Output pipe of a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pipe {
    Stdout,
    Stderr,
}

/// Output of a process on stdout.
#[derive(Debug, Default)]
pub(super) struct Stdout {
    /// First bytes, up to the maximum.
    pub(super) kept: Vec<u8>,
    /// Number of bytes in total.
    pub(super) bytes: usize,
}

impl Stdout {
    fn add(&mut self, read: &[u8]) {
        self.bytes += read.len();
        let room = STDOUT_BYTES_MAX.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&read[..read.len().min(room)]);
    }

    /// Returns true if nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes == self.kept.len()
    }
}

/// Output pipes of a process, until they are closed.
pub(super) struct Printed {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    heard: Stdout,
}

impl Printed {
    pub(super) fn of(child: &mut Child) -> Printed {
        Printed {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            heard: Stdout::default(),
        }
    }

    /// Returns true if nobody can print any more.
    pub(super) fn is_over(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    pub(super) fn stdout(&self) -> &Stdout {
        &self.heard
    }

    pub(super) fn descriptors(&self) -> Vec<(Pipe, BorrowedFd<'_>)> {
        let stdout = self.stdout.as_ref().map(|pipe| (Pipe::Stdout, pipe.as_fd()));
        let stderr = self.stderr.as_ref().map(|pipe| (Pipe::Stderr, pipe.as_fd()));
        stdout.into_iter().chain(stderr).collect()
    }

    /// Reads once from a pipe that has data or has been closed.
    pub(super) fn read(&mut self, pipe: Pipe, said: &mut Said<'_>) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        let read = match pipe {
            Pipe::Stdout => self.stdout.as_mut().map(|pipe| pipe.read(&mut buffer)),
            Pipe::Stderr => self.stderr.as_mut().map(|pipe| pipe.read(&mut buffer)),
        };
        let bytes = match read {
            Some(Err(why)) if why.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Some(read) => read?,
            None => 0,
        };
        match (pipe, bytes) {
            (Pipe::Stdout, 0) => self.stdout = None,
            (Pipe::Stderr, 0) => self.stderr = None,
            (Pipe::Stdout, bytes) => self.heard.add(&buffer[..bytes]),
            (Pipe::Stderr, bytes) => said.add(&buffer[..bytes]),
        }
        Ok(())
    }
}

/// Stderr of a process: lines that are passed on at once, and the last of them for its failure.
pub(super) struct Said<'a> {
    index: ItemIndex,
    notes: &'a Notes,
    tail: Tail,
    begun: Vec<u8>,
}

impl<'a> Said<'a> {
    pub(super) fn new(index: ItemIndex, notes: &'a Notes) -> Said<'a> {
        Said {
            index,
            notes,
            tail: Tail::default(),
            begun: Vec::new(),
        }
    }

    fn add(&mut self, mut read: &[u8]) {
        while !read.is_empty() {
            let room = LINE_BYTES_MAX - self.begun.len();
            let end = memchr(b'\n', read).unwrap_or(read.len());
            let taken = end.min(room);
            self.begun.extend_from_slice(&read[..taken]);
            let is_end = taken == end && end < read.len();
            read = &read[taken + usize::from(is_end)..];
            if is_end || self.begun.len() == LINE_BYTES_MAX {
                self.take_line();
            }
        }
    }

    fn take_line(&mut self) {
        let line = std::mem::take(&mut self.begun);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let text = cut(&shown(line), LINE_BYTES_MAX);
        self.notes.say_of(self.index, &text);
        self.tail.push(text);
    }

    /// Takes the unfinished line, if any, and returns the last lines.
    pub(super) fn finish(mut self) -> Tail {
        if !self.begun.is_empty() {
            self.take_line();
        }
        self.tail
    }
}
