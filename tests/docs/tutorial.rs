//! The tutorial is gone through as a person would: in order, word for word, in a fresh home, with a terminal
//! for each thing that keeps running.
//!
//! The comment above a block says where it is typed. `<!-- terminal 1 -->`: the block's last command keeps running
//! there, and the block is over when what stands below the command has appeared; `^C` as the first line ends what runs
//! there. `<!-- keys: + rate_55/s q -->`: on a terminal of its own, where `+` and `q` are keys that are pressed, and
//! `rate_55/s` is a text that is awaited (`_` is a blank). Without a comment: in a third terminal, command by command.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::page::{Block, Page};
use super::shell::{Running, Shell};

/// The page of the tutorial.
pub(crate) const PAGE: &str = "docs/tutorial.md";
/// Time within which the page promises to be done.
const PROMISED: Duration = Duration::from_secs(300);

struct Tour {
    /// First, so that what runs is ended before its directory goes.
    terminals: BTreeMap<String, Running>,
    shell: Shell,
}

impl Tour {
    fn block(&mut self, block: &Block) -> Result<(), String> {
        match block.mark.as_deref() {
            None => self.commands(block),
            Some(mark) if mark.starts_with("terminal ") => self.in_terminal(mark, block),
            Some(mark) => match mark.strip_prefix("keys: ") {
                Some(keys) => block
                    .steps()
                    .iter()
                    .try_for_each(|step| self.shell.press(step, keys)),
                None => Err(format!("a tutorial has no mark {mark:?}")),
            },
        }
    }

    fn commands(&mut self, block: &Block) -> Result<(), String> {
        block
            .steps()
            .iter()
            .try_for_each(|step| self.shell.run(step, false))
    }

    fn in_terminal(&mut self, name: &str, block: &Block) -> Result<(), String> {
        let is_command = |line: &String| line.starts_with("$ ");
        let first = block
            .lines
            .iter()
            .position(is_command)
            .unwrap_or(block.lines.len());
        let (ending, rest) = block.lines.split_at(first);
        if let Some((key, expected)) = ending.split_first() {
            assert_eq!(key, "^C", "a terminal's block begins with a command or with ^C");
            let running = self
                .terminals
                .remove(name)
                .ok_or_else(|| format!("nothing runs in {name}"))?;
            self.shell.interrupt(running, expected)?;
        }
        let steps = Block {
            lines: rest.to_vec(),
            ..Block::default()
        }
        .steps();
        let Some((last, before)) = steps.split_last() else {
            return Ok(());
        };
        before.iter().try_for_each(|step| self.shell.run(step, false))?;
        let running = self.shell.keep_running(last)?;
        let before = self.terminals.insert(name.to_owned(), running);
        assert!(before.is_none(), "{name} is still busy");
        Ok(())
    }
}

#[test]
fn the_tutorial_works_word_for_word_in_five_minutes() {
    let begun = Instant::now();
    let mut tour = Tour {
        shell: Shell::empty(),
        terminals: BTreeMap::new(),
    };
    let page = Page::read(PAGE);
    let blocks = page.blocks.iter().filter(|block| block.language == "console");
    let mut count = 0;
    for block in blocks {
        tour.block(block)
            .unwrap_or_else(|why| panic!("{}\n{why}", block.lines.join("\n")));
        count += block.lines.iter().filter(|line| line.starts_with("$ ")).count();
    }
    assert!(count >= 12, "commands are found: {count}");
    assert!(tour.terminals.is_empty(), "the tutorial ends what it started");
    assert!(begun.elapsed() < PROMISED, "it took {:?}", begun.elapsed());
    println!("the tutorial took {:?}", begun.elapsed());
}
