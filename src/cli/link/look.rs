//! Output options for this process's standard output.

use console::Term;
use serde::Serialize;
use serde_json::json;

use super::args::{CsvGuard, Form, View};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;
use crate::output::table::times::{TimeStyle, Times};
use crate::output::table::{Listing, Paper};
use crate::shell::Shell;

/// Output options, from flags, environment and terminal.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Format of the output.
    pub form: Form,
    /// Protection of CSV cells against formulas.
    pub guard: CsvGuard,
    /// Width and colours of tables and cards.
    pub paper: Paper,
    /// Style in which times are printed.
    pub style: TimeStyle,
    /// True if neither hints nor progress are printed.
    pub is_quiet: bool,
}

impl Look {
    /// Combines the flags, the environment and the terminal.
    pub fn new(view: &View, shell: &Shell) -> Look {
        let terminal = Term::stdout();
        let is_terminal = terminal.is_term();
        let width = terminal
            .size_checked()
            .map(|(_, columns)| usize::from(columns))
            .filter(|width| *width > 0);
        let colours = colours(shell.colors, is_terminal, |name| shell.var(name));
        let paper = Paper {
            width: width.filter(|_| is_terminal),
            colours,
        };
        Look {
            form: view.output,
            guard: view.csv_guard,
            paper,
            style: view.time,
            is_quiet: view.quiet,
        }
    }

    /// Prints a list of local objects, for which no node was asked.
    ///
    /// # Errors
    /// Fails if standard output can't be written.
    pub(crate) fn list<T: Serialize>(
        &self,
        listing: &Listing<T>,
        all: &[T],
        shell: &Shell,
    ) -> Result<Exit, Fault> {
        self.list_at(0, listing, all, shell)
    }

    /// Prints a list of local objects with times relative to `now_ms`.
    ///
    /// # Errors
    /// Same as [`Look::list`].
    pub(crate) fn list_at<T: Serialize>(
        &self,
        now_ms: i64,
        listing: &Listing<T>,
        all: &[T],
        shell: &Shell,
    ) -> Result<Exit, Fault> {
        let times = self.times(now_ms);
        let text = match self.form {
            Form::Json => json!({"items": all, "next_cursor": null}).to_string(),
            Form::Ndjson => all.iter().map(|one| json!(one).to_string() + "\n").collect(),
            Form::Name => listing.names(all),
            Form::Csv => listing.csv(all, &times, self.guard.into()),
            Form::Table | Form::Wide if all.is_empty() => {
                shell.screen.must_say(listing.none);
                return Ok(Exit::Ok);
            }
            Form::Table | Form::Wide => listing.table(all, &times, self.paper, self.form == Form::Wide),
        };
        screen::put(&text).map(|()| Exit::Ok)
    }

    /// Returns the format of times relative to `now_ms`.
    pub fn times(&self, now_ms: i64) -> Times {
        Times {
            style: self.style,
            now_ms,
        }
    }
}

/// Returns true if output is coloured: the flag decides, then NO_COLOR, then CLICOLOR_FORCE, then the terminal.
fn colours<'a>(wanted: Option<bool>, is_terminal: bool, var: impl Fn(&str) -> Option<&'a str>) -> bool {
    if let Some(wanted) = wanted {
        return wanted;
    }
    if var("NO_COLOR").is_some() {
        return false;
    }
    if var("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    is_terminal && var("TERM") != Some("dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_then_no_color_and_force_reaches_pipes() {
        let of = |flag, terminal, env: &'static [(&str, &str)]| {
            colours(flag, terminal, |name| {
                env.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
            })
        };
        assert!(of(None, true, &[]));
        assert!(!of(None, false, &[]));
        assert!(!of(Some(false), true, &[("CLICOLOR_FORCE", "1")]));
        assert!(of(Some(true), false, &[("NO_COLOR", "1")]));
        assert!(!of(None, true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
        assert!(of(None, false, &[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")]));
        assert!(!of(None, false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!of(None, true, &[("TERM", "dumb")]));
    }
}
