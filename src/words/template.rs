//! Templates of messages: text with `{name}` for an argument, `{name#item}` for a count with its noun in the right number,
//! and `{name?one|many}` for words that depend on a count.

use std::fmt;

use crate::arg::Arg;
use crate::format;

/// Piece of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Words(&'a str),
    Value(&'a str),
    Counted(&'a str, &'a str),
    Choice(&'a str, &'a str, &'a str),
}

/// Splits a template. A brace that closes nothing is text.
pub(crate) fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        let (piece, tail) = next(rest)?;
        rest = tail;
        Some(piece)
    })
}

fn next(rest: &str) -> Option<(Piece<'_>, &str)> {
    if rest.is_empty() {
        return None;
    }
    let open = rest.find('{').unwrap_or(rest.len());
    if open > 0 {
        return Some((Piece::Words(&rest[..open]), &rest[open..]));
    }
    let Some(close) = rest.find('}') else {
        return Some((Piece::Words(rest), ""));
    };
    Some((placeholder(&rest[1..close]), &rest[close + 1..]))
}

fn placeholder(inside: &str) -> Piece<'_> {
    if let Some((name, noun)) = inside.split_once('#') {
        return Piece::Counted(name, noun);
    }
    match inside.split_once('?') {
        Some((name, words)) => {
            let (one, many) = words.split_once('|').unwrap_or((words, words));
            Piece::Choice(name, one, many)
        }
        None => Piece::Value(inside),
    }
}

/// Writes a template with its arguments. A name without an argument is written as it stands, so that nothing is hidden.
pub(crate) fn render(
    f: &mut fmt::Formatter<'_>,
    template: &str,
    names: &[&str],
    args: &[Arg],
) -> fmt::Result {
    let of = |name: &str| {
        names
            .iter()
            .position(|known| *known == name)
            .and_then(|at| args.get(at))
    };
    for piece in pieces(template) {
        match piece {
            Piece::Words(words) => f.write_str(words)?,
            Piece::Value(name) => match of(name) {
                Some(arg) => write!(f, "{arg}")?,
                None => write!(f, "{{{name}}}")?,
            },
            Piece::Counted(name, noun) => f.write_str(&format::counted(number(of(name)), noun))?,
            Piece::Choice(name, one, many) => f.write_str(if number(of(name)) == 1 { one } else { many })?,
        }
    }
    Ok(())
}

fn number(arg: Option<&Arg>) -> u64 {
    match arg {
        Some(Arg::Count(number)) => *number,
        _ => 0,
    }
}
