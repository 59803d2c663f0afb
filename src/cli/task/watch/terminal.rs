//! Block of lines on standard error that is redrawn in place, and keys that arrive without Enter.

use std::io::{self, IsTerminal, Write};

use console::{Term, measure_text_width};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::frame::Sheet;
use super::keys::read;
use crate::shell::Shell;

/// Size of a terminal that doesn't report its own.
const SIZE_DEFAULT: (u16, u16) = (24, 80);

/// Terminal of the watch. Dropping it restores the previous state.
pub(super) struct Terminal {
    stderr: Term,
    /// Previous settings of standard input; `None` if it isn't a terminal.
    before: Option<Termios>,
    /// Widths of the lines drawn last.
    drawn: Vec<usize>,
    colours: bool,
    is_ascii: bool,
}

impl Terminal {
    /// Takes over the terminal. Ctrl-C remains a signal.
    ///
    /// # Errors
    /// Fails if the terminal refuses.
    pub(super) fn take(colours: bool, shell: &Shell) -> io::Result<Terminal> {
        let stdin = io::stdin();
        let before = if stdin.is_terminal() && is_in_front() {
            Some(tcgetattr(&stdin)?)
        } else {
            None
        };
        if let Some(before) = &before {
            let mut keys = before.clone();
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(&stdin, OptionalActions::Now, &keys)?;
        }
        let terminal = Terminal {
            stderr: Term::stderr(),
            before,
            drawn: Vec::new(),
            colours,
            is_ascii: is_ascii(shell),
        };
        terminal.stderr.hide_cursor()?;
        Ok(terminal)
    }

    /// True if keys can be pressed.
    pub(super) fn has_keys(&self) -> bool {
        self.before.is_some()
    }

    /// Returns the area to draw on now; its size may change at any time.
    pub(super) fn sheet(&self) -> Sheet {
        let size = self
            .stderr
            .size_checked()
            .filter(|(rows, columns)| *rows > 0 && *columns > 0);
        let (rows, columns) = size.unwrap_or(SIZE_DEFAULT);
        Sheet {
            width: usize::from(columns),
            height: usize::from(rows),
            colours: self.colours,
            is_ascii: self.is_ascii,
        }
    }

    /// Draws lines over those drawn before.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = rise(&self.drawn, self.sheet().width);
        for line in lines {
            text += &format!("{line}\u{1b}[K\r\n");
        }
        text += "\u{1b}[J";
        self.drawn = lines.iter().map(|line| measure_text_width(line)).collect();
        let mut stderr = io::stderr().lock();
        stderr.write_all(text.as_bytes())?;
        stderr.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        self.stderr.show_cursor().ok();
        if let Some(before) = &self.before {
            tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
        }
    }
}

/// Moves the cursor to the first of the drawn lines. A terminal that has become narrower has broken them into more.
fn rise(drawn: &[usize], width: usize) -> String {
    let rows: usize = drawn
        .iter()
        .map(|cells| cells.div_ceil(width.max(1)).max(1))
        .sum();
    if rows == 0 {
        String::new()
    } else {
        format!("\r\u{1b}[{rows}A")
    }
}

/// True if this process may read the terminal: a job in the background would be stopped by trying to change it.
fn is_in_front() -> bool {
    let owner = rustix::termios::tcgetpgrp(io::stdin());
    owner.is_ok_and(|owner| owner == rustix::process::getpgrp())
}

/// True if the locale has no Unicode. Without a locale, Unicode is assumed.
fn is_ascii(shell: &Shell) -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| shell.var(name));
    named.is_some_and(|name| !name.to_lowercase().replace('-', "").contains("utf8"))
}

/// Reads keys until the terminal is closed.
pub(super) async fn read_keys(keys: &mpsc::Sender<u8>) {
    let mut stdin = tokio::io::stdin();
    let mut bytes = [0; 64];
    while let Ok(count @ 1..) = stdin.read(&mut bytes).await {
        for key in read(&bytes[..count]) {
            if keys.send(key).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_rises_by_as_many_rows_as_the_terminal_shows_now() {
        assert_eq!(rise(&[], 80), "");
        assert_eq!(rise(&[80, 0, 12], 80), "\r\u{1b}[3A");
        assert_eq!(rise(&[80, 0, 41], 40), "\r\u{1b}[5A");
    }
}
