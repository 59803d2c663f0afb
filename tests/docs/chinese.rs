//! A Chinese page is its original in another language: the same headings in the same order, the same commands word for
//! word, the same tables, links and numbers of things.

use super::page::{Block, Page};

/// Pages that have a translation, without their ending.
const TRANSLATED: [&str; 8] = [
    "README",
    "docs/jobs",
    "docs/moving",
    "docs/personal-data",
    "docs/service",
    "docs/sizing",
    "docs/tutorial",
    "docs/why",
];

fn english(name: &str) -> Page {
    Page::read(&format!("{name}.md"))
}

fn chinese(name: &str) -> Page {
    Page::read(&format!("{name}.zh-CN.md"))
}

/// The levels of the headings.
fn headings(page: &Page) -> Vec<usize> {
    let prose = page.prose();
    let lines = prose.lines().filter(|line| line.starts_with('#'));
    lines
        .map(|line| line.chars().take_while(|c| *c == '#').count())
        .collect()
}

/// A block without what may be translated: comments behind commands.
fn core(block: &Block) -> (String, Option<String>, Vec<String>) {
    let plain = |line: &String| {
        let comment = block.language == "sh";
        let code = if comment {
            line.split("  # ").next().unwrap_or_default()
        } else {
            line
        };
        if comment && code.trim_start().starts_with('#') {
            String::new()
        } else {
            code.trim_end().to_owned()
        }
    };
    (
        block.language.clone(),
        block.mark.clone(),
        block.lines.iter().map(plain).collect(),
    )
}

/// Links of a page, of translated pages by the names of their originals; without headings where those are translated:
/// in the page itself, and in other translated pages.
fn links(page: &Page) -> Vec<String> {
    let is_translated = |file: &str| {
        let name = file.trim_end_matches(".md").rsplit('/').next();
        TRANSLATED.iter().any(|one| one.rsplit('/').next() == name)
    };
    let plain = |link: String| {
        let link = link.replace(".zh-CN.md", ".md");
        let file = link.split('#').next().unwrap_or_default();
        (if is_translated(file) { file } else { &link }).to_owned()
    };
    let links = page.links().into_iter().filter(|link| !link.starts_with('#'));
    let mut links: Vec<String> = links.map(plain).collect();
    links.sort();
    links
}

/// What stands in backticks in prose: flags, keys, paths.
fn code(page: &Page) -> Vec<String> {
    let prose = page.prose();
    let mut words: Vec<String> = prose.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    words.sort();
    words
}

fn is_chinese(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

#[test]
fn chinese_pages_keep_step() {
    for (english, chinese) in TRANSLATED.map(|name| (english(name), chinese(name))) {
        let file = &chinese.file;
        assert_eq!(
            headings(&chinese),
            headings(&english),
            "{file}: the tree of headings"
        );
        for (at, (one, other)) in english.blocks.iter().zip(&chinese.blocks).enumerate() {
            assert_eq!(core(other), core(one), "{file}: block {at}");
        }
        assert_eq!(chinese.blocks.len(), english.blocks.len(), "{file}: blocks");
        assert_eq!(links(&chinese), links(&english), "{file}: links");
        assert_eq!(code(&chinese), code(&english), "{file}: what stands in backticks");
        let rows = |page: &Page| page.prose().lines().filter(|line| line.starts_with('|')).count();
        assert_eq!(rows(&chinese), rows(&english), "{file}: rows of tables");
    }
}

#[test]
fn chinese_pages_are_translated() {
    for page in TRANSLATED.map(chinese) {
        let prose = page.prose();
        let paragraphs = prose
            .split("\n\n")
            .filter(|text| text.chars().filter(|c| c.is_alphabetic()).count() > 40);
        for paragraph in paragraphs.filter(|text| !text.starts_with("<!--")) {
            let chinese = paragraph.chars().filter(|c| is_chinese(*c)).count();
            assert!(chinese >= 10, "{}: not translated: {paragraph}", page.file);
        }
    }
}
