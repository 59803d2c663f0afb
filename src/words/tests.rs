use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use crate::template::{Piece, pieces};
use crate::{bytes, catalog, count, rate, span};

fn names(template: &str) -> BTreeSet<&str> {
    let of = |piece| match piece {
        Piece::Words(_) => None,
        Piece::Value(name) | Piece::Counted(name, _) | Piece::Choice(name, ..) => Some(name),
    };
    pieces(template).filter_map(of).collect()
}

#[test]
fn every_message_uses_exactly_its_arguments_in_both_languages() {
    for form in catalog() {
        let all: BTreeSet<&str> = form.names.iter().copied().collect();
        assert_eq!(names(form.english), all, "{}: {}", form.code, form.english);
        // A language without plurals may say less.
        let chinese = names(form.chinese);
        assert!(chinese.is_subset(&all), "{}: {}", form.code, form.chinese);
    }
}

#[test]
fn every_code_is_there_once() {
    let mut codes = BTreeSet::new();
    assert!(catalog().all(|form| codes.insert(form.code)));
}

#[test]
fn chinese_has_no_english_words_but_settings_and_commands() {
    for form in catalog() {
        let has_chinese = form
            .chinese
            .chars()
            .any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        // Nothing but arguments and signs between them.
        let is_bare = pieces(form.chinese).all(|piece| match piece {
            Piece::Words(words) => !words.contains(char::is_alphabetic),
            _ => true,
        });
        assert!(has_chinese || is_bare, "{}: {}", form.code, form.chinese);
    }
}

#[test]
fn spans_have_one_form() {
    let shown = |millis: u64| span(Duration::from_millis(millis));
    let forms = [0, 3, 450, 999, 1_000, 2_400, 9_949, 12_000, 59_999].map(shown);
    assert_eq!(
        forms,
        ["0s", "3ms", "450ms", "999ms", "1s", "2.4s", "9.9s", "12s", "59s"]
    );
    let forms = [60, 125, 3_599, 3_600, 12_000, 86_400, 367_200].map(|seconds| shown(seconds * 1000));
    assert_eq!(forms, ["1m", "2m 05s", "59m 59s", "1h", "3h 20m", "1d", "4d 6h"]);
    assert_eq!(span(Duration::from_micros(310)), "0.3ms");
}

#[test]
fn amounts_have_three_digits_and_are_never_more_than_was_used() {
    let parts = [
        0,
        1,
        71_234_567,
        710_000_000,
        1_000_000_000,
        812_900_000_000,
        3_129_000_000_000,
        90_000_000_000_000,
        1_999_999_999_999_999,
        2_500_000_000_000_000_000_000,
    ];
    let texts = [
        "0",
        "0.000000001",
        "0.0712",
        "0.71",
        "1",
        "812",
        "3.12k",
        "90k",
        "1.99M",
        "2,500,000M",
    ];
    assert_eq!(parts.map(crate::amount), texts);
}

#[test]
fn rates_are_by_the_unit_that_shows_them() {
    let shown = [0.0, 2_000.0, 99.96, 12.5, 0.3, 0.05, 0.001, 0.000_02].map(rate);
    assert_eq!(
        shown,
        [
            "0/s", "2,000/s", "100/s", "12.5/s", "0.3/s", "3/m", "3.6/h", "1.7/day"
        ]
    );
}

proptest! {
    #[test]
    fn counts_are_their_digits_in_groups_of_three(number: u64) {
        let text = count(number);
        prop_assert_eq!(text.replace(',', ""), number.to_string());
        prop_assert!(text.split(',').skip(1).all(|group| group.len() == 3));
    }

    #[test]
    fn a_longer_span_is_never_shorter_in_text_of_the_same_unit(seconds in 60_u64..400_000) {
        let text = span(Duration::from_secs(seconds));
        prop_assert!(text.len() <= 7, "{}", text);
    }

    #[test]
    fn sizes_have_four_digits_at_most(size: u64) {
        let text = bytes(size);
        let digits = text.chars().filter(char::is_ascii_digit).count();
        prop_assert!(digits <= 5, "{}", text);
    }
}
