//! Nothing is documented that doesn't exist: every `windrow …` of the pages, in blocks and in backticks, is a command
//! that the program has, with flags that it takes; every block of commands is executed or says why not.

use clap::Command;

use super::cli::program;
use super::page::Page;
use super::pages;

/// The words of the commands in a line: what follows `windrow ` up to the end of that command.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("windrow ") {
        let begins = at == 0 || line[..at].ends_with([' ', '(', '`', '/']);
        if begins {
            let rest = &line[at + "windrow ".len()..];
            let end = rest
                .find(['|', ';', '&', '#', '`', ')', '>'])
                .unwrap_or(rest.len());
            found.push(rest[..end].split_whitespace().map(str::to_owned).collect());
        }
    }
    found
}

/// What is wrong with a command.
fn fault(program: &Command, words: &[String]) -> Option<String> {
    let mut command = program;
    let mut rest = words;
    while let Some((word, others)) = rest.split_first() {
        let Some(inner) = command.find_subcommand(word) else {
            break;
        };
        (command, rest) = (inner, others);
    }
    let first = words.first()?;
    if std::ptr::eq(command, program) && !first.starts_with(['-', '…']) {
        return Some(format!("there is no command {first}"));
    }
    // A noun's first word is a verb, unless it is a flag.
    let is_word = |word: &&String| word.starts_with(|c: char| c.is_ascii_lowercase());
    if let Some(verb) = rest.first().filter(is_word)
        && command.has_subcommands()
        && command.get_positionals().next().is_none()
    {
        return Some(format!("{} has no verb {verb}", command.get_name()));
    }
    let own = rest.split(|word| word == "--").next().unwrap_or_default();
    let flags = own.iter().filter(|word| word.starts_with("--"));
    let takes = |flag: &str| {
        let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
        let name = name.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        ["help", "version"].contains(&name) || command.get_arguments().any(|arg| arg.get_long() == Some(name))
    };
    let unknown = flags.into_iter().find(|flag| !takes(flag))?;
    Some(format!("windrow {} takes no {unknown}", command.get_name()))
}

/// Lines in which commands stand: those of blocks that are typed, and what stands in backticks.
fn lines(page: &Page) -> Vec<String> {
    let typed = page
        .blocks
        .iter()
        .filter(|block| ["console", "sh"].contains(&block.language.as_str()));
    let typed = typed.flat_map(|block| {
        let console = block.language == "console";
        block
            .lines
            .iter()
            .filter_map(move |line| match line.strip_prefix("$ ") {
                Some(command) => Some(command.to_owned()),
                None => (!console).then(|| line.clone()),
            })
    });
    let prose = page.prose();
    let quoted = prose
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| code.starts_with("windrow "))
        .map(str::to_owned);
    typed.chain(quoted).collect()
}

#[test]
fn every_command_of_the_pages_exists() {
    let program = program();
    let (mut faults, mut count) = (Vec::new(), 0);
    for page in pages() {
        for line in lines(&page) {
            for words in commands(&line) {
                count += 1;
                if let Some(fault) = fault(&program, &words) {
                    faults.push(format!("{}: {line}\n  {fault}", page.file));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 60, "commands are found: {count}");
}

#[test]
fn commands_that_do_not_exist_are_seen() {
    let program = program();
    for (line, is_right) in [
        (
            "cat x | windrow run --csv - --rate 5/s -- handler --own-flag",
            true,
        ),
        ("WINDROW_LOG=debug windrow run --total 5 -- true", true),
        ("windrow help exit-codes", true),
        ("windrow fly", false),
        ("windrow run --speed 5", false),
        ("windrow config fly", false),
        ("windrow config default --speed", false),
    ] {
        let words = commands(line);
        assert_eq!(words.len(), 1, "{line}");
        assert_eq!(fault(&program, &words[0]).is_none(), is_right, "{line}");
    }
    assert!(commands("the windrower's windrow").is_empty());
}

/// A block of commands is executed by a test, or the comment above it says why not.
#[test]
fn every_block_of_commands_is_executed_or_says_why_not() {
    let mut faults = Vec::new();
    for page in pages() {
        for block in page
            .blocks
            .iter()
            .filter(|block| ["sh", "bash", "shell"].contains(&block.language.as_str()))
        {
            let told = block
                .mark
                .as_deref()
                .and_then(|mark| mark.strip_prefix("not run: "));
            if told.is_none_or(|why| why.split(' ').count() < 3) {
                faults.push(format!(
                    "{}: {}",
                    page.file,
                    block.lines.first().map_or("", String::as_str)
                ));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "neither run (console) nor marked <!-- not run: … -->:\n{}",
        faults.join("\n")
    );
}
