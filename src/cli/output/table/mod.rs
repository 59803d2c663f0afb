//! Lists and single things: for people as a table or a card that fits their terminal, for scripts as CSV, NDJSON or
//! names, all from one definition.
//!
//! A noun defines its [`Listing`] once. Rows are the API's own bodies; a column says how one of their facts is shown.
//! What comes from a server is cleaned of control characters before a terminal sees it.

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

/// A time is shortened to no less than this. Unit: terminal cells.
const TIME_CELLS: usize = 7;

/// A list of one kind of things.
#[derive(Debug)]
pub struct Listing<T: 'static> {
    /// Its columns, in their order.
    pub columns: &'static [Column<T>],
    /// How one of the things is named, for `-o name`.
    pub name: fn(&T) -> String,
    /// What is said when there is none.
    pub none: &'static str,
}

/// A column.
#[derive(Debug)]
pub struct Column<T> {
    /// Its head, in capitals; in lower case the head of the CSV, where that has no name of its own.
    title: &'static str,
    /// The head of the CSV.
    name: Option<&'static str>,
    side: Side,
    keep: Keep,
    /// It is shortened to no less than this before a column goes. Unit: terminal cells.
    least: usize,
    content: Content<T>,
    tone: Option<Tone>,
}

/// Content of a column, read off a thing.
#[derive(Debug)]
enum Content<T> {
    /// A text; a dash where it is empty.
    Text(fn(&T) -> &str),
    /// A text that may be missing.
    Maybe(fn(&T) -> Option<&str>),
    /// A number or a rate as it is written.
    Plain(fn(&T) -> Option<String>),
    /// A number with its thousands apart.
    Count(fn(&T) -> Option<u64>),
    /// A time.
    Time(fn(&T) -> Option<&str>),
    /// Anything else.
    Cell(fn(&T, &Times) -> Cell),
}

impl<T> Column<T> {
    /// A column that is made from the whole thing.
    pub const fn new(
        title: &'static str,
        side: Side,
        keep: Keep,
        least: usize,
        cell: fn(&T, &Times) -> Cell,
    ) -> Column<T> {
        Column::showing(title, side, keep, least, Content::Cell(cell))
    }

    /// A column of texts.
    pub const fn text(title: &'static str, keep: Keep, least: usize, of: fn(&T) -> &str) -> Column<T> {
        Column::showing(title, Side::Left, keep, least, Content::Text(of))
    }

    /// A column of texts that may be missing.
    pub const fn maybe(
        title: &'static str,
        keep: Keep,
        least: usize,
        of: fn(&T) -> Option<&str>,
    ) -> Column<T> {
        Column::showing(title, Side::Left, keep, least, Content::Maybe(of))
    }

    /// A column of numbers and rates that are shown as they are.
    pub const fn plain(
        title: &'static str,
        keep: Keep,
        least: usize,
        of: fn(&T) -> Option<String>,
    ) -> Column<T> {
        Column::showing(title, Side::Right, keep, least, Content::Plain(of))
    }

    /// A column of numbers whose thousands stand apart.
    pub const fn count(
        title: &'static str,
        keep: Keep,
        least: usize,
        of: fn(&T) -> Option<u64>,
    ) -> Column<T> {
        Column::showing(title, Side::Right, keep, least, Content::Count(of))
    }

    /// A column of times.
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

    /// With another head in CSV, where the API calls it otherwise than people do.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Column<T> {
        Column {
            name: Some(name),
            ..self
        }
    }

    /// In this colour, where there is something to show.
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

/// Where cells stand in their column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// When a column may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Never.
    Always,
    /// Where there is no room; the lowest number first.
    Rank(u8),
    /// It is shown in `-o wide` and CSV only.
    Wide,
    /// It is shown in CSV only.
    Csv,
}

/// What stands in a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// For people.
    pub text: String,
    /// For people with little room; without it the text is cut off.
    pub short: Option<String>,
    /// For CSV; none is the same text.
    pub plain: Option<String>,
    /// Its colour.
    pub tone: Tone,
}

impl Cell {
    /// A text that is the same for people and scripts.
    pub fn new(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    /// A dash: there is nothing to show.
    pub fn nothing() -> Cell {
        Cell::new("–").plain("").tone(Tone::Dim)
    }

    /// A text; a dash where there is none.
    pub fn text(text: Option<impl Into<String>>) -> Cell {
        text.map_or_else(Cell::nothing, Cell::new)
    }

    /// A number with its thousands apart; a dash where there is none.
    pub fn count(number: Option<u64>) -> Cell {
        number.map_or_else(Cell::nothing, |number| {
            Cell::new(human::count(number)).plain(number.to_string())
        })
    }

    /// A time; scripts get it as the API has it.
    pub fn time(at: Option<&str>, times: &Times) -> Cell {
        at.map_or_else(Cell::nothing, |at| Cell::new(times.text(at)).plain(at))
    }

    /// With a shorter text where there is little room.
    #[must_use]
    pub fn short(mut self, short: impl Into<String>) -> Cell {
        self.short = Some(short.into());
        self
    }

    /// With another text for scripts.
    #[must_use]
    pub fn plain(mut self, plain: impl Into<String>) -> Cell {
        self.plain = Some(plain.into());
        self
    }

    /// In this colour.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Cell {
        self.tone = tone;
        self
    }
}

/// The paper that a table is drawn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Terminal cells of a line; none is without end.
    pub width: Option<usize>,
    /// Whether colours are shown.
    pub colours: bool,
}

impl<T> Listing<T> {
    /// The table, with more columns in `wide`.
    pub fn table(&self, things: &[T], times: &Times, paper: Paper, wide: bool) -> String {
        let shown = |column: &&Column<T>| match column.keep {
            Keep::Always | Keep::Rank(_) => true,
            Keep::Wide => wide,
            Keep::Csv => false,
        };
        let columns: Vec<&Column<T>> = self.columns.iter().filter(shown).collect();
        let cells = |thing| columns.iter().map(|column| column.cell(thing, times)).collect();
        let rows: Vec<Vec<Cell>> = things.iter().map(cells).collect();
        // Who asks for everything gets everything, however long the lines are.
        let width = paper.width.filter(|_| !wide);
        let places = fit::places(&columns, &rows, width);
        let mut text = paint::head(&columns, &places, paper.colours);
        for row in &rows {
            text += &paint::row(&columns, row, &places, paper.colours);
        }
        text
    }

    /// The same as CSV, every column of it.
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

    /// The names, a line each.
    pub fn names(&self, things: &[T]) -> String {
        things
            .iter()
            .map(|thing| format!("{}\n", clean(&(self.name)(thing))))
            .collect()
    }
}

/// Rows as CSV, for the tools of a shell.
pub(crate) fn csv(rows: impl Iterator<Item = Vec<String>>, guard: Guard) -> String {
    let mut out = Vec::new();
    rows.for_each(|row| guard.push_line(&row, &mut out));
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
