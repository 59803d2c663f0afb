//! Rows of CSV as RFC 4180 has them, safe to open in a spreadsheet.

use csv::{Terminator, WriterBuilder};

/// Room for most rows. Unit: bytes.
const ROW: usize = 512;

/// Appends a row. A cell that a spreadsheet would take for a formula gets an apostrophe before it.
pub(crate) fn push_row(cells: &[impl AsRef<str>], out: &mut Vec<u8>) {
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .buffer_capacity(ROW)
        .from_writer(out);
    let safe = cells.iter().map(|cell| match cell.as_ref() {
        text if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => format!("'{text}"),
        text => text.to_owned(),
    });
    // Memory takes whatever is written.
    writer.write_record(safe).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be_and_formulas_are_texts() {
        let mut out = Vec::new();
        push_row(
            &["a", "b,c", "say \"hi\"", "=1+1", "-1,2", "@x", "", "两\n行"],
            &mut out,
        );
        let text = String::from_utf8(out).expect("it is text");
        assert_eq!(
            text,
            "a,\"b,c\",\"say \"\"hi\"\"\",'=1+1,\"'-1,2\",'@x,,\"两\n行\"\r\n"
        );
    }
}
