//! Tables as people see them: golden texts for wide and narrow terminals, CJK, and colours.

use super::times::{TimeStyle, Times};
use super::*;

struct Place {
    id: &'static str,
    name: Option<&'static str>,
    failed: u32,
    at: Option<&'static str>,
}

const PLACES: Listing<Place> = Listing {
    columns: &[
        Column::text("ID", Keep::Always, 4, |place: &Place| place.id).tone(Tone::Strong),
        Column::maybe("NAME", Keep::Rank(2), 6, |place| place.name),
        Column::plain("FAILED", Keep::Rank(1), 6, |place| Some(place.failed.to_string())),
        Column::new("MADE AT", Side::Left, Keep::Wide, 5, |place, times| {
            Cell::time(place.at, times)
        }),
    ],
    name: |place| place.id.to_owned(),
    none: "nothing",
};

const TIMES: Times = Times {
    style: TimeStyle::Relative,
    now_ms: 60_000,
};

fn things() -> [Place; 3] {
    let place = |id, name, failed, at| Place { id, name, failed, at };
    [
        place("t1", Some("黑色星期五"), 61, Some("1970-01-01T00:00:00.000Z")),
        place("t1042", Some("orders, \"2025\""), 0, None),
        place("t7", None, 1204, None),
    ]
}

fn drawn(width: Option<usize>, wide: bool) -> String {
    PLACES.table(
        &things(),
        &TIMES,
        Paper {
            width,
            colours: false,
        },
        wide,
    )
}

#[test]
fn wide_characters_keep_columns_straight() {
    let expected = "\
ID     NAME            FAILED
t1     黑色星期五          61
t1042  orders, \"2025\"       0
t7     –                 1204
";
    assert_eq!(drawn(None, false), expected);
    assert_eq!(drawn(Some(29), false), expected);
}

#[test]
fn texts_are_shortened_before_columns_go() {
    let expected = "\
ID     NAME      FAILED
t1     黑色星…       61
t1042  orders,…       0
t7     –           1204
";
    assert_eq!(drawn(Some(23), false), expected);
    assert_eq!(
        drawn(Some(18), false),
        "ID     NAME\nt1     黑色星期五\nt1042  orders, \"2…\nt7     –\n"
    );
    assert_eq!(drawn(Some(8), false), "ID\nt1\nt1042\nt7\n");
    assert_eq!(drawn(Some(3), false), "ID\nt1\nt1…\nt7\n");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in 1..60 {
        for line in drawn(Some(width), false).lines() {
            assert!(console::measure_text_width(line) <= width, "{width}: {line:?}");
        }
    }
}

#[test]
fn wide_shows_every_column_however_long() {
    let table = drawn(Some(10), true);
    assert!(
        table.starts_with("ID     NAME            FAILED  MADE AT\n"),
        "{table}"
    );
    assert!(table.contains("1m ago"), "{table}");
}

#[test]
fn colours_change_no_width_and_are_absent_where_unwanted() {
    let paper = Paper {
        width: Some(23),
        colours: true,
    };
    let coloured = PLACES.table(&things(), &TIMES, paper, false);
    assert!(coloured.contains("\u{1b}["));
    let bare: Vec<String> = coloured
        .lines()
        .map(|line| console::strip_ansi_codes(line).trim_end().to_owned())
        .collect();
    assert_eq!(bare.join("\n") + "\n", drawn(Some(23), false));
    assert!(!drawn(None, false).contains('\u{1b}'));
}

#[test]
fn csv_has_every_column_and_quotes_what_needs_it() {
    assert_eq!(
        PLACES.csv(&things(), &TIMES, windrow_core::text::csv::Guard::On),
        "id,name,failed,made_at\nt1,黑色星期五,61,1970-01-01T00:00:00.000Z\nt1042,\"orders, \"\"2025\"\"\",0,\nt7,,1204,\n"
    );
    assert_eq!(PLACES.names(&things()), "t1\nt1042\nt7\n");
}

#[test]
fn a_servers_text_cant_steer_the_terminal() {
    let thing = Place {
        id: "t1\u{1b}[2J\u{7}",
        name: Some("a\nb\u{202E}c"),
        failed: 0,
        at: None,
    };
    let table = PLACES.table(
        &[thing],
        &TIMES,
        Paper {
            width: None,
            colours: false,
        },
        false,
    );
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(
        table.contains("t1\u{FFFD}[2J\u{FFFD}") && table.contains("a b\u{FFFD}c"),
        "{table}"
    );
}

#[test]
fn a_card_lines_its_texts_up() {
    let card = Card::new()
        .title("push/x", Tone::Strong)
        .title("t1", Tone::Plain)
        .line("a", "one");
    let card = card
        .line("longer label", "two\nlines")
        .maybe("none", None::<String>);
    assert_eq!(
        card.text(Paper {
            width: None,
            colours: false
        }),
        "push/x  t1\n  a             one\n  longer label  two lines\n"
    );
}
