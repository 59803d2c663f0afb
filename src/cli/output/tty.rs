//! Terminal that a bar is drawn on, and that may be closed at any time.

use std::io;

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

/// Draws per second; indicatif's own number for terminals.
const DRAWS_PER_SECOND: u8 = 20;

/// Standard error as a terminal that accepts everything once it is closed. indicatif unwraps the errors of a terminal
/// while it holds its lock, so that the report of that panic waited for the same lock for ever.
#[derive(Debug)]
struct Tty(Term);

/// Returns the target of the bars, or `None` if the terminal can't move its cursor (`TERM=dumb`).
pub(super) fn target() -> Option<ProgressDrawTarget> {
    let tty = Box::new(Tty(Term::buffered_stderr()));
    let can_draw = !ProgressDrawTarget::stderr().is_hidden();
    can_draw.then(|| ProgressDrawTarget::term_like_with_hz(tty, DRAWS_PER_SECOND))
}

/// Drops the error of a terminal that is gone: what should be shown has no reader.
fn shown(_drawn: io::Result<()>) -> io::Result<()> {
    Ok(())
}

impl TermLike for Tty {
    fn width(&self) -> u16 {
        self.0.size().1
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        shown(self.0.move_cursor_up(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        shown(self.0.move_cursor_down(n))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        shown(self.0.move_cursor_right(n))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        shown(self.0.move_cursor_left(n))
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        shown(self.0.write_line(line))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        shown(self.0.write_str(text))
    }

    fn clear_line(&self) -> io::Result<()> {
        shown(self.0.clear_line())
    }

    fn flush(&self) -> io::Result<()> {
        shown(self.0.flush())
    }
}
