//! Lists and single objects from one definition: tables or cards that fit the terminal for people, CSV, NDJSON or
//! names for scripts.
//!
//! Each noun defines its [`Listing`] once. Rows are the API's own bodies; a column formats one of their facts. Server
//! data is cleaned of control characters before it reaches a terminal.

mod card;
mod fit;
pub mod human;
mod paint;
pub mod times;

pub use self::card::Card;
pub use self::paint::Tone;
use self::times::Times;
pub use windrow_core::text::clean;
use windrow_core::text::csv::Guard;

/// Minimum width of a shortened time. Unit: terminal cells.
const TIME_CELLS: usize = 7;

/// Definition of a list of one kind of object.
#[derive(Debug)]
pub struct Listing<T: 'static> {
    /// Columns in their order of display.
    pub columns: &'static [Column<T>],
    /// Returns the name of an object, for `-o name`.
    pub name: fn(&T) -> String,
    /// Message for an empty list.
    pub none: &'static str,
}

/// Column of a list.
#[derive(Debug)]
pub struct Column<T> {
    /// Heading in capitals; in lower case it is the CSV heading, unless `name` is set.
    title: &'static str,
    /// Heading in CSV, if it differs from the title.
    name: Option<&'static str>,
    side: Side,
    keep: Keep,
    /// Minimum width: a column is dropped rather than shortened further. Unit: terminal cells.
    least: usize,
    content: Content<T>,
    tone: Option<Tone>,
}

/// Content of a column, derived from an object.
#[derive(Debug)]
enum Content<T> {
    /// Text, shown as a dash if empty.
    Text(fn(&T) -> &str),
    /// Text that may be missing.
    Maybe(fn(&T) -> Option<&str>),
    /// Number or rate, shown as written.
    Plain(fn(&T) -> Option<String>),
    /// Number with thousands separators.
    Count(fn(&T) -> Option<u64>),
    /// Time in the requested style.
    Time(fn(&T) -> Option<&str>),
    /// Any other content, as a finished cell.
    Cell(fn(&T, &Times) -> Cell),
}

impl<T> Column<T> {
    /// Creates a column computed from the whole object.
    pub const fn new(
        title: &'static str,
        side: Side,
        keep: Keep,
        least: usize,
        cell: fn(&T, &Times) -> Cell,
    ) -> Column<T> {
        Column::showing(title, side, keep, least, Content::Cell(cell))
    }

    /// Creates a column of texts.
    pub const fn text(title: &'static str, keep: Keep, least: usize, of: fn(&T) -> &str) -> Column<T> {
        Column::showing(title, Side::Left, keep, least, Content::Text(of))
    }

    /// Creates a column of texts that may be missing.
    pub const fn maybe(
        title: &'static str,
        keep: Keep,
        least: usize,
        of: fn(&T) -> Option<&str>,
    ) -> Column<T> {
        Column::showing(title, Side::Left, keep, least, Content::Maybe(of))
    }

    /// Creates a column of numbers or rates, shown as written.
    pub const fn plain(
        title: &'static str,
        keep: Keep,
        least: usize,
        of: fn(&T) -> Option<String>,
    ) -> Column<T> {
        Column::showing(title, Side::Right, keep, least, Content::Plain(of))
    }

    /// Creates a column of numbers with thousands separators.
    pub const fn count(
        title: &'static str,
        keep: Keep,
        least: usize,
        of: fn(&T) -> Option<u64>,
    ) -> Column<T> {
        Column::showing(title, Side::Right, keep, least, Content::Count(of))
    }

    /// Creates a column of times.
    pub const fn time(title: &'static str, keep: Keep, of: fn(&T) -> Option<&str>) -> Column<T> {
        Column::showing(title, Side::Left, keep, TIME_CELLS, Content::Time(of))
    }

    const fn showing(
        title: &'static str,
        side: Side,
        keep: Keep,
        least: usize,
        content: Content<T>,
    ) -> Column<T> {
        Column {
            title,
            name: None,
            side,
            keep,
            least,
            content,
            tone: None,
        }
    }

    /// Sets another heading for CSV, if the API's name differs from the one for people.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Column<T> {
        Column {
            name: Some(name),
            ..self
        }
    }

    /// Sets a colour for cells that aren't empty.
    #[must_use]
    pub const fn tone(self, tone: Tone) -> Column<T> {
        Column {
            tone: Some(tone),
            ..self
        }
    }

    fn cell(&self, thing: &T, times: &Times) -> Cell {
        let cell = match self.content {
            Content::Text(of) => Cell::text(Some(of(thing)).filter(|text| !text.is_empty())),
            Content::Maybe(of) => Cell::text(of(thing)),
            Content::Plain(of) => Cell::text(of(thing)),
            Content::Count(of) => Cell::count(of(thing)),
            Content::Time(of) => Cell::time(of(thing), times),
            Content::Cell(cell) => cell(thing, times),
        };
        match self.tone {
            Some(tone) if cell.tone == Tone::Plain => cell.tone(tone),
            _ => cell,
        }
    }
}

/// Alignment of cells in their column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left-aligned, used for words.
    Left,
    /// Right-aligned, used for numbers.
    Right,
}

/// Condition under which a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Shown always, even if texts must be cut.
    Always,
    /// Dropped if there is no room, lowest number first.
    Rank(u8),
    /// Shown only in `-o wide` and in CSV.
    Wide,
    /// Shown only in CSV.
    Csv,
}

/// Cell of a table, for people and for scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Text shown to people.
    pub text: String,
    /// Shorter text if space is short; without one, `text` is cut.
    pub short: Option<String>,
    /// Text in CSV, or `None` for the same text.
    pub plain: Option<String>,
    /// Colour of the text.
    pub tone: Tone,
}

impl Cell {
    /// Creates a cell with the same text for people and scripts.
    pub fn new(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    /// Creates an empty cell, shown as a dash.
    pub fn nothing() -> Cell {
        Cell::new("–").plain("").tone(Tone::Dim)
    }

    /// Creates a cell with a text, or a dash if there is none.
    pub fn text(text: Option<impl Into<String>>) -> Cell {
        text.map_or_else(Cell::nothing, Cell::new)
    }

    /// Creates a cell with a number and thousands separators, or a dash if there is none.
    pub fn count(number: Option<u64>) -> Cell {
        number.map_or_else(Cell::nothing, |number| {
            Cell::new(human::count(number)).plain(number.to_string())
        })
    }

    /// Creates a cell with a time; scripts get the API's format.
    pub fn time(at: Option<&str>, times: &Times) -> Cell {
        at.map_or_else(Cell::nothing, |at| Cell::new(times.text(at)).plain(at))
    }

    /// Sets a shorter text for narrow terminals.
    #[must_use]
    pub fn short(mut self, short: impl Into<String>) -> Cell {
        self.short = Some(short.into());
        self
    }

    /// Sets a different text for scripts.
    #[must_use]
    pub fn plain(mut self, plain: impl Into<String>) -> Cell {
        self.plain = Some(plain.into());
        self
    }

    /// Sets the colour of the cell.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Cell {
        self.tone = tone;
        self
    }
}

/// Width and colours available to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Number of terminal cells per line, or `None` for no limit.
    pub width: Option<usize>,
    /// True if colours are used.
    pub colours: bool,
}

impl<T> Listing<T> {
    /// Formats objects as a table, with more columns if `wide`.
    pub fn table(&self, things: &[T], times: &Times, paper: Paper, wide: bool) -> String {
        let shown = |column: &&Column<T>| match column.keep {
            Keep::Always | Keep::Rank(_) => true,
            Keep::Wide => wide,
            Keep::Csv => false,
        };
        let columns: Vec<&Column<T>> = self.columns.iter().filter(shown).collect();
        let cells = |thing| columns.iter().map(|column| column.cell(thing, times)).collect();
        let rows: Vec<Vec<Cell>> = things.iter().map(cells).collect();
        // `-o wide` shows everything, however long the lines get.
        let width = paper.width.filter(|_| !wide);
        let places = fit::places(&columns, &rows, width);
        let mut text = paint::head(&columns, &places, paper.colours);
        for row in &rows {
            text += &paint::row(&columns, row, &places, paper.colours);
        }
        text
    }

    /// Formats objects as CSV with every column.
    pub fn csv(&self, things: &[T], times: &Times, guard: Guard) -> String {
        let head = self.columns.iter().map(|column| match column.name {
            Some(name) => name.to_owned(),
            None => column.title.to_lowercase().replace(' ', "_"),
        });
        let rows = things.iter().map(|thing| {
            let cells = self.columns.iter().map(|column| column.cell(thing, times));
            cells.map(|cell| cell.plain.unwrap_or(cell.text)).collect()
        });
        csv(std::iter::once(head.collect()).chain(rows), guard)
    }

    /// Formats objects as their names, one per line.
    pub fn names(&self, things: &[T]) -> String {
        things
            .iter()
            .map(|thing| format!("{}\n", clean(&(self.name)(thing))))
            .collect()
    }
}

/// Formats rows as CSV, for shell tools.
pub(crate) fn csv(rows: impl Iterator<Item = Vec<String>>, guard: Guard) -> String {
    let mut out = Vec::new();
    rows.for_each(|row| guard.push_line(&row, &mut out));
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
