//! Card that shows one object, with a label and a text per line.

use console::measure_text_width;

use super::paint::Tone;
use super::times::Times;
use super::{Paper, clean};

/// Minimum column at which the texts begin. Unit: terminal cells.
const LABEL_CELLS_MIN: usize = 8;

/// Card with a title and labelled lines.
#[derive(Clone, Debug, Default)]
pub struct Card {
    title: Vec<(String, Tone)>,
    lines: Vec<(String, String, Tone)>,
}

impl Card {
    /// Creates a card without a title.
    pub fn new() -> Card {
        Card::default()
    }

    /// Adds a part to the title unless it is empty.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>, tone: Tone) -> Card {
        let text = text.into();
        if !text.is_empty() {
            self.title.push((text, tone));
        }
        self
    }

    /// Adds a line with a label.
    #[must_use]
    pub fn line(self, label: &str, text: impl Into<String>) -> Card {
        self.toned(label, text, Tone::Plain)
    }

    /// Adds a line with a colour.
    #[must_use]
    pub fn toned(mut self, label: &str, text: impl Into<String>, tone: Tone) -> Card {
        self.lines.push((label.to_owned(), text.into(), tone));
        self
    }

    /// Adds a line if there is a text.
    #[must_use]
    pub fn maybe(self, label: &str, text: Option<impl Into<String>>) -> Card {
        match text {
            Some(text) => self.line(label, text),
            None => self,
        }
    }

    /// Adds a line for a time of the API, if there is one.
    #[must_use]
    pub fn time(self, label: &str, at: Option<&str>, times: &Times) -> Card {
        self.maybe(label, at.map(|at| times.text(at)))
    }

    /// Returns the text. Long lines are left to the terminal, since a card is read, not scanned.
    pub fn text(&self, paper: Paper) -> String {
        let title: Vec<String> = self
            .title
            .iter()
            .map(|(text, tone)| tone.paint(&clean(text), paper.colours))
            .collect();
        let mut text = title.join("  ");
        if !title.is_empty() {
            text.push('\n');
        }
        let labels = self.lines.iter().map(|(label, ..)| measure_text_width(label));
        let width = labels.max().unwrap_or(0).max(LABEL_CELLS_MIN);
        for (label, line, tone) in &self.lines {
            let label = console::pad_str(label, width, console::Alignment::Left, None);
            let line = tone.paint(&clean(line), paper.colours);
            text += &format!("  {}  {line}\n", Tone::Dim.paint(&label, paper.colours));
        }
        text
    }
}
