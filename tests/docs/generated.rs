//! Pages, or parts of them, that are made from the code. A stale one fails; `UPDATE_DOCS=1` writes it anew.

use super::root;

/// Compares a page with what it must be, or writes it when `UPDATE_DOCS` is set.
pub(crate) fn check(file: &str, wanted: &str) {
    let path = root().join(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = found
        .lines()
        .zip(wanted.lines())
        .position(|(found, wanted)| found != wanted);
    let line = differs.unwrap_or_else(|| found.lines().count().min(wanted.lines().count()));
    assert!(
        found == wanted,
        "{file} is stale from line {}:\n  it says   {:?}\n  should be {:?}\n\
         write it anew with UPDATE_DOCS=1 cargo nextest run --test docs generated",
        line + 1,
        found.lines().nth(line),
        wanted.lines().nth(line)
    );
}

/// A text as a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
