//! Rows of CSV as every surface writes them: RFC 4180, and no cell is a formula for a spreadsheet unless it was asked for.

use std::borrow::Cow;

use csv::{Terminator, WriterBuilder};

/// Room for most rows. Unit: bytes.
const ROW: usize = 512;

/// Keeps texts from being formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// A text that a spreadsheet would take for a formula gets an apostrophe before it. Numbers stay numbers.
    #[default]
    On,
    /// Every cell is what it is.
    Off,
}

impl Guard {
    /// Appends a row of a file, which ends as RFC 4180 has it.
    pub fn push_row(self, cells: &[impl AsRef<str>], out: &mut Vec<u8>) {
        self.push(cells, Terminator::CRLF, out);
    }

    /// Appends a row for the tools of a shell, which know no carriage return.
    pub fn push_line(self, cells: &[impl AsRef<str>], out: &mut Vec<u8>) {
        self.push(cells, Terminator::Any(b'\n'), out);
    }

    fn push(self, cells: &[impl AsRef<str>], end: Terminator, out: &mut Vec<u8>) {
        let mut writer = WriterBuilder::new()
            .terminator(end)
            .buffer_capacity(ROW)
            .from_writer(out);
        let cells = cells.iter().map(|cell| self.cell(cell.as_ref()).into_owned());
        // Memory takes whatever is written.
        writer.write_record(cells).ok();
    }

    /// A cell as it is written, before its quotes.
    fn cell(self, text: &str) -> Cow<'_, str> {
        match self {
            Guard::On if is_formula(text) => Cow::Owned(format!("'{text}")),
            Guard::On | Guard::Off => Cow::Borrowed(text),
        }
    }
}

/// A text that a spreadsheet computes: what begins it counts behind any blanks, which spreadsheets drop, and full-width
/// characters count as the ones that they are typed for. A number is no formula.
fn is_formula(text: &str) -> bool {
    if text.starts_with(['\t', '\r', '\n']) {
        return true;
    }
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || super::names::is_invisible(c);
    let begins = text.trim_start_matches(is_blank);
    begins.starts_with([
        '=', '+', '-', '@', '＝', '＋', '－', '＠', '\u{2212}', '﹢', '﹣', '﹦', '﹫',
    ]) && !is_number(text)
}

/// A number as JSON has them, or with a sign before it.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(guard: Guard, cells: &[&str]) -> String {
        let mut out = Vec::new();
        guard.push_row(cells, &mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn cells_are_quoted_where_they_must_be_and_formulas_are_texts() {
        assert_eq!(
            row(
                Guard::On,
                &["a", "b,c", "say \"hi\"", "=1+1", "-1,2", "@x", "", "两\n行"]
            ),
            "a,\"b,c\",\"say \"\"hi\"\"\",'=1+1,\"'-1,2\",'@x,,\"两\n行\"\r\n"
        );
    }

    #[test]
    fn what_a_spreadsheet_would_compute_is_guarded_and_numbers_are_not() {
        for formula in [
            "=1",
            "+a",
            "-a",
            "@a",
            "\n=1+1",
            " =1+1",
            "\u{A0}=1",
            "\u{FEFF}=1",
            "\u{200B}=1",
            "＝1+1",
            "＋1",
            "－1",
            "＠a",
            "\t1",
            "\r1",
            "-1+2",
            "-",
            "+inf",
            "-0x10",
        ] {
            assert!(is_formula(formula), "{formula:?}");
            assert!(
                row(Guard::On, &[formula])
                    .trim_start_matches('"')
                    .starts_with('\''),
                "{formula:?}"
            );
            assert!(!row(Guard::Off, &[formula]).contains('\''), "{formula:?}");
        }
        for plain in [
            "-5",
            "+5",
            "-0.5",
            "-1e3",
            "5",
            "a=1",
            "",
            "1=1",
            " a",
            "{\"a\":-1}",
        ] {
            assert!(!is_formula(plain), "{plain:?}");
        }
    }
}
