//! Detection of shell syntax in the text of `--each`. Without a shell it would reach the program as a plain argument
//! and have no effect.

use std::iter::Peekable;
use std::str::CharIndices;

/// Returns the first word that contains something a shell would act on. Text in quotes, after backslashes and in the
/// braces of placeholders doesn't count.
pub(super) fn found(text: &str) -> Option<&str> {
    let mut reader = Reader {
        chars: text.char_indices().peekable(),
        text,
        before: None,
        quote: None,
    };
    let assigned = assignment(text);
    assigned.or_else(|| reader.find().map(|at| word_at(text, at)))
}

/// Returns `NAME=value` if it is in the place of a program.
fn assignment(text: &str) -> Option<&str> {
    let first = word_at(text, text.find(|c: char| !c.is_whitespace())?);
    let (name, _) = first.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(first)
}

struct Reader<'a> {
    chars: Peekable<CharIndices<'a>>,
    text: &'a str,
    /// Previous character; `None` at the beginning.
    before: Option<char>,
    quote: Option<char>,
}

impl Reader<'_> {
    fn find(&mut self) -> Option<usize> {
        while let Some((at, c)) = self.chars.next() {
            match (self.quote, c) {
                (None | Some('"'), '\\') => drop(self.chars.next()),
                (Some(quote), c) if c == quote => self.quote = None,
                (None, '\'' | '"') => self.quote = Some(c),
                (None, '{') => self.skip_placeholder(),
                (quote, c) if quote != Some('\'') && self.is_expanded(c) => return Some(at),
                (None, c) if self.is_acted_on(at, c) => return Some(at),
                _ => {}
            }
            self.before = Some(c);
        }
        None
    }

    fn skip_placeholder(&mut self) {
        while self.chars.next_if(|(_, c)| !matches!(c, '}' | '{')).is_some() {}
        self.chars.next();
    }

    /// True at `$x`, `${x}`, `$(x)` and backquotes, also within double quotes.
    fn is_expanded(&mut self, c: char) -> bool {
        let next = self.chars.peek().map(|(_, c)| *c);
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_{(@*#?$!-".contains(c);
        c == '`' || c == '$' && next.is_some_and(is_name)
    }

    /// True at pipes, redirections, command separators, patterns and home directories.
    fn is_acted_on(&mut self, at: usize, c: char) -> bool {
        let begins = self.before.is_none_or(char::is_whitespace);
        match c {
            '|' | ';' | '<' | '>' => true,
            // In a URL's query it has no other meaning.
            '&' => !is_in_url(self.text, at),
            '*' => !is_in_url(self.text, at),
            '~' => begins,
            '\n' => !self.text[at..].trim().is_empty() && self.before != Some('\n'),
            _ => false,
        }
    }
}

/// True if the position is inside a URL, which is quoted for a shell but needs no quotes without one.
fn is_in_url(text: &str, at: usize) -> bool {
    let word = word_at(text, at);
    word.contains("://") && !word.contains("&&") && !word.ends_with('&')
}

/// Returns the word around a position, or the next line for a line break.
fn word_at(text: &str, at: usize) -> &str {
    let from = text[..at].rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let rest = text[from..].trim_start();
    let to = rest.find(char::is_whitespace).unwrap_or(rest.len());
    &rest[..to]
}

#[cfg(test)]
mod tests {
    use super::found;

    #[test]
    fn what_a_shell_would_act_on_is_found_wherever_it_is_attached() {
        let table = [
            ("echo {}; touch out/y", "{};"),
            ("echo {} >out/{}.txt", ">out/{}.txt"),
            ("echo {} 2>/dev/null", "2>/dev/null"),
            ("echo {}|wc -c", "{}|wc"),
            ("wc -l < l.txt", "<"),
            ("echo {} &", "&"),
            ("echo {}&", "{}&"),
            ("a&&b", "a&&b"),
            ("echo $(date) {}", "$(date)"),
            ("echo `date` {}", "`date`"),
            ("echo \"$HOME\" {}", "\"$HOME\""),
            ("$HOME/tool {}", "$HOME/tool"),
            ("echo \"a `b`\"", "`b`\""),
            ("cp *.txt {}", "*.txt"),
            ("~/bin/tool {}", "~/bin/tool"),
            ("FOO=1 printenv FOO", "FOO=1"),
            ("echo a\necho b", "a"),
            ("curl http://h/?a={a}&b=1&& x", "http://h/?a={a}&b=1&&"),
        ];
        for (text, word) in table {
            assert_eq!(found(text), Some(word), "{text}");
        }
    }

    #[test]
    fn what_is_quoted_or_a_place_is_text() {
        for text in [
            "echo ';' '>' \"a|b\" 'x && y' '$HOME' '`date`' '*'",
            r"echo a\;b \> \$HOME \`x\`",
            "curl http://h/?a={a}&b={b}",
            "echo {a>b} {$x} {a;b} {}",
            "echo 5$ $ a~b a=b",
            "echo a \\\n  b\n",
            "",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
