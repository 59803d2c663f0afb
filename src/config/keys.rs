//! The list of keys, and `config.toml`, which documents them. Nothing is written twice.

use super::sections::{ROWS, SECTIONS};
use super::table::Key;
use windrow_core::settings::table::paragraphs;

/// Head of the generated `config.toml`.
const HEAD: &str = "\
# Every key of Windrow's configuration, with its default, its unit and the reason for the value.
#
# Generated from the code: UPDATE_DOCS=1 cargo nextest run --test docs generated
# Precedence: flag > environment > file > default. The environment variable of `node.capacity_rate` is
# WINDROW_NODE__CAPACITY_RATE (`__` is the dot). An unknown key is an error that suggests a similar one.
# Spans of time are text (\"100ms\", \"15s\", \"2m\", \"30d\"), so are rates (\"500/s\", \"30/m\", \"1/2s\", \"10k/s\") and sizes
# (\"64 KiB\"). Paths are relative to the working directory. [reload] = applied on SIGHUP without a restart.
";
/// Column where comments of `config.toml` begin. Below, the maximum line length. Both in characters.
const COMMENT_AT: usize = 32;
const LINE_MAX: usize = 120;

/// Returns all keys by section, in the order of `config.toml`.
pub fn keys() -> Vec<Key> {
    ROWS.iter().flat_map(|row| (row.keys)(row)).collect()
}

/// Returns the default of a key, in TOML.
pub(super) fn default_of(key: &str) -> Option<&'static str> {
    let found = keys().into_iter().find(|known| known.name == key)?;
    Some(found.default)
}

/// Generates `config.toml`: every key with its default and meaning.
pub fn documented() -> String {
    let (keys, mut text) = (keys(), HEAD.to_owned());
    for (section, about) in sections() {
        text.push('\n');
        line(&mut text, &format!("[{section}]"), &about);
        for key in keys.iter().filter(|key| key.place().0 == section) {
            let mark = if key.reloads { "[reload] " } else { "" };
            line(
                &mut text,
                &format!("{} = {}", key.place().1, key.default),
                &format!("{mark}{}", key.about),
            );
            for example in key
                .example
                .unwrap_or_default()
                .lines()
                .filter(|line| !line.trim().is_empty())
            {
                text.push_str(&format!("#{example}\n"));
            }
        }
    }
    text
}

/// Returns the sections, each with its description.
pub fn sections() -> impl Iterator<Item = (&'static str, String)> {
    let about = |about| paragraphs(about).next().unwrap_or_default();
    SECTIONS
        .iter()
        .map(move |(section, text)| (*section, about(text)))
}

/// Writes a value with its comment, wrapped onto lines of its own if it is long.
fn line(text: &mut String, code: &str, comment: &str) {
    let mut line = format!("{code:<0$}#", COMMENT_AT.max(code.chars().count() + 1));
    for word in comment.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > LINE_MAX {
            text.push_str(&line);
            line = format!("\n{:COMMENT_AT$}#", "");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_with_its_variable_and_whether_it_reloads() {
        let keys = keys();
        let of = |name: &str| keys.iter().find(|key| key.name == name).expect(name);
        assert_eq!(of("node.capacity_rate").env(), "WINDROW_NODE__CAPACITY_RATE");
        assert!(of("node.capacity_rate").reloads && of("task_defaults.timeout").reloads);
        assert!(!of("http.listen").reloads);
        assert_eq!(of("task_defaults.timeout").written, "span");
        assert_eq!(of("task_defaults.timeout").default, "\"10s\"");
        assert!(keys.iter().all(|key| !key.about.is_empty()));
    }

    #[test]
    fn a_comment_goes_on_below_itself() {
        let mut text = String::new();
        line(&mut text, "a = 1", "word ".repeat(20).trim_end());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("a = 1                           # word") && lines[0].len() <= LINE_MAX);
        assert!(lines[1].starts_with("                                # word"));
    }
}
