//! A page of documentation: its blocks of code, links, headings and paths.

use super::root;

/// A file of documentation.
pub(crate) struct Page {
    /// Its path from the root.
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

/// A fenced block of code.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) lines: Vec<String>,
    /// The comment above it, `<!-- … -->`: a file that it quotes, or words for who runs it.
    pub(crate) mark: Option<String>,
}

/// One command of a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) exit: i32,
    pub(crate) background: bool,
    /// Lines of output; `^C` is Ctrl-C.
    pub(crate) expected: Vec<String>,
}

impl Page {
    pub(crate) fn read(file: &str) -> Page {
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|why| panic!("{file}: {why}"));
        let blocks = blocks(&text);
        Page {
            file: file.to_owned(),
            text,
            blocks,
        }
    }

    /// The text outside blocks.
    pub(crate) fn prose(&self) -> String {
        let mut inside = false;
        let keep = |line: &&str| {
            let fence = line.starts_with("```");
            inside ^= fence;
            !inside && !fence
        };
        self.text.lines().filter(keep).collect::<Vec<_>>().join("\n")
    }

    /// Where the page points, except to the web.
    pub(crate) fn links(&self) -> Vec<String> {
        let prose = self.prose();
        let links = prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        links
            .filter(|link| !link.contains("://"))
            .map(str::to_owned)
            .collect()
    }

    /// Words in backticks that are paths of files of ours.
    pub(crate) fn paths(&self) -> Vec<String> {
        let kinds = [".rs", ".md", ".toml", ".sh", ".py", ".csv", ".ndjson"];
        let fits = |word: &&str| {
            let plain = word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            plain && word.contains('/') && kinds.iter().any(|kind| word.ends_with(kind))
        };
        self.prose()
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(fits)
            .map(str::to_owned)
            .collect()
    }

    /// Whether a heading has this anchor.
    pub(crate) fn has_heading(&self, anchor: &str) -> bool {
        let prose = self.prose();
        prose
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .any(|heading| slug(heading) == anchor)
    }
}

/// The anchor of a heading, as the usual hosts make it.
fn slug(heading: &str) -> String {
    let heading = heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .replace(' ', "-");
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_".contains(*c))
        .collect()
}

fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut open, mut mark) = (Vec::new(), None::<Block>, None);
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let language = language.split_whitespace().next().unwrap_or_default().to_owned();
                open = Some(Block {
                    language,
                    mark: mark.take(),
                    lines: Vec::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.push(line),
            (None, None) => {
                mark = line
                    .strip_prefix("<!-- ")
                    .and_then(|rest| rest.strip_suffix(" -->"))
                    .map(str::to_owned);
            }
        }
    }
    assert!(open.is_none(), "a block doesn't end");
    blocks
}

impl Block {
    /// A command that ends with `\` goes on in the next line, as in a shell.
    fn push(&mut self, line: &str) {
        let begun = self.lines.last_mut();
        let goes_on = begun.filter(|last| self.language == "console" && last.starts_with("$ "));
        match goes_on.and_then(|last| last.strip_suffix(" \\").map(str::to_owned).zip(Some(last))) {
            Some((begin, last)) => *last = format!("{begin} {}", line.trim_start()),
            None => self.lines.push(line.to_owned()),
        }
    }

    /// The file that it quotes: a mark of one word is a path.
    pub(crate) fn quotes(&self) -> Option<&str> {
        self.mark.as_deref().filter(|mark| !mark.contains(' '))
    }

    /// Its commands, each with what stands below it.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for line in &self.lines {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(step(command)),
                (None, Some(last)) => last.expected.push(line.clone()),
                (None, None) => panic!("a console block begins with a command, not with {line:?}"),
            }
        }
        steps
    }
}

fn step(text: &str) -> Step {
    let (text, exit) = match text.rsplit_once("  # exit ") {
        Some((command, code)) => (command, code.trim().parse().expect("an exit code")),
        None => (text, 0),
    };
    let (command, background) = match text.strip_suffix(" &") {
        Some(command) => (command, true),
        None => (text, false),
    };
    Step {
        command: command.to_owned(),
        exit,
        background,
        expected: Vec::new(),
    }
}

#[test]
fn blocks_are_cut_into_commands() {
    let found = blocks(
        "x\n```console\n$ a b  # exit 8\nout\n^C\nmore\n$ serve &\n```\n## Y\n<!-- f.py -->\n```python\ncode\n```\n\
         <!-- terminal 1 -->\n```console\n$ c\n```\n",
    );
    let made = |command: &str, exit, background, expected: &[&str]| Step {
        command: command.to_owned(),
        exit,
        background,
        expected: expected.iter().map(|line| (*line).to_owned()).collect(),
    };
    let expected = [
        made("a b", 8, false, &["out", "^C", "more"]),
        made("serve", 0, true, &[]),
    ];
    assert_eq!(found[0].steps(), expected);
    assert_eq!((found[0].quotes(), found[1].quotes()), (None, Some("f.py")));
    assert_eq!(
        (found[2].quotes(), found[2].mark.as_deref()),
        (None, Some("terminal 1"))
    );
}

#[test]
fn a_command_may_take_several_lines() {
    let found =
        blocks("```console\n$ a \\\n    b \\\n  'c'  # exit 8\nout \\\nmore\n```\n```sh\n$ a \\\n b\n```\n");
    let [step] = &found[0].steps()[..] else {
        panic!("{found:?}")
    };
    assert_eq!((step.command.as_str(), step.exit), ("a b 'c'", 8));
    assert_eq!(step.expected, ["out \\", "more"]);
    assert_eq!(found[1].lines.len(), 2, "only commands that are typed");
}

#[test]
fn anchors_are_those_of_the_usual_hosts() {
    assert_eq!(slug("# What a CSV may look like"), "what-a-csv-may-look-like");
    assert_eq!(slug("## Should I use this?"), "should-i-use-this");
}
