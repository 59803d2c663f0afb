//! CSV rows as every surface writes them: RFC 4180, and no cell is a formula for a spreadsheet unless requested.

use std::borrow::Cow;

use csv::{Terminator, WriterBuilder};

/// Initial capacity, enough for most rows. Unit: bytes.
const ROW: usize = 512;

/// Protection against texts that a spreadsheet takes for formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// Puts an apostrophe before a text that a spreadsheet would take for a formula. Numbers stay numbers.
    #[default]
    On,
    /// Writes every cell unchanged.
    Off,
}

impl Guard {
    /// Appends a row of a file, with the line end of RFC 4180.
    pub fn push_row(self, cells: &[impl AsRef<str>], out: &mut Vec<u8>) {
        self.push(cells, Terminator::CRLF, out);
    }

    /// Appends a row for shell tools, which don't know the carriage return.
    pub fn push_line(self, cells: &[impl AsRef<str>], out: &mut Vec<u8>) {
        self.push(cells, Terminator::Any(b'\n'), out);
    }

    fn push(self, cells: &[impl AsRef<str>], end: Terminator, out: &mut Vec<u8>) {
        let mut writer = WriterBuilder::new()
            .terminator(end)
            .buffer_capacity(ROW)
            .from_writer(out);
        let cells = cells.iter().map(|cell| self.cell(cell.as_ref()).into_owned());
        // Writing to memory can't fail.
        writer.write_record(cells).ok();
    }

    /// Returns a cell as it is written, before quoting.
    fn cell(self, text: &str) -> Cow<'_, str> {
        match self {
            Guard::On if is_formula(text) => Cow::Owned(format!("'{text}")),
            Guard::On | Guard::Off => Cow::Borrowed(text),
        }
    }
}

/// Returns true if a spreadsheet would compute the text. Leading blanks are ignored, because spreadsheets drop them,
/// and full-width characters count as their ASCII forms. A number is not a formula.
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

/// Returns true for a number as in JSON, or one with a sign before it.
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
