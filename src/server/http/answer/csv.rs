//! Rows of CSV as RFC 4180 has them, safe to open in a spreadsheet.

/// Appends a row. A cell that a spreadsheet would take for a formula gets an apostrophe before it.
pub(crate) fn push_row(cells: &[impl AsRef<str>], out: &mut Vec<u8>) {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_cell(cell.as_ref(), out);
    }
    out.extend_from_slice(b"\r\n");
}

fn push_cell(cell: &str, out: &mut Vec<u8>) {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let is_quoted = cell.contains([',', '"', '\n', '\r']);
    if is_quoted {
        out.push(b'"');
    }
    if is_formula {
        out.push(b'\'');
    }
    for byte in cell.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    if is_quoted {
        out.push(b'"');
    }
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
