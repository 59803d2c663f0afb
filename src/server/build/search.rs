//! Search index of the guide: for each section its page, heading, beginning, and remaining words. The last is smaller
//! than the text, and enough to tell which sections have a word.

use std::collections::BTreeSet;

use super::json;
use super::markdown::{Element, Node};

/// Length of the beginning that a result shows, in characters.
const SHOWN: usize = 200;

/// Returns the index entries of a page, as JSON arrays.
pub(crate) fn entries(at: usize, title: &str, page: &Element) -> Vec<String> {
    sections(title, page)
        .iter()
        .map(|section| section.entry(at))
        .collect()
}

/// Heading with the text below it.
#[derive(Default)]
struct Section {
    id: String,
    heading: String,
    prose: String,
    code: String,
}

/// Splits a page at its headings; the first section is the text below the title.
fn sections(title: &str, page: &Element) -> Vec<Section> {
    let mut sections = vec![Section {
        heading: title.to_owned(),
        ..Section::default()
    }];
    let elements = page.inner.iter().filter_map(|node| match node {
        Node::Element(element) => Some(element),
        Node::Text(_) => None,
    });
    for element in elements {
        if element.is_heading() {
            sections.push(Section {
                id: element.attributes["id"].clone(),
                heading: element.line(),
                ..Section::default()
            });
        } else if let Some(section) = sections.last_mut() {
            let is_code = element.tag == "pre";
            element.text(if is_code {
                &mut section.code
            } else {
                &mut section.prose
            });
        }
    }
    sections
}

impl Section {
    fn entry(&self, at: usize) -> String {
        let prose: Vec<&str> = self.prose.split_whitespace().collect();
        let shown = beginning(&prose.join(" "));
        let known: BTreeSet<String> = words(&self.heading).chain(words(&shown)).collect();
        let others: BTreeSet<String> = words(&self.prose).chain(words(&self.code)).collect();
        let others: Vec<&str> = others.difference(&known).map(String::as_str).collect();
        let texts = [&self.id, &self.heading, &shown, &others.join(" ")].map(|text| json::quoted(text));
        format!("[{at},{}]", texts.join(","))
    }
}

/// Cuts a text before the word that would exceed [`SHOWN`]; a text without spaces is cut there.
fn beginning(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(SHOWN) else {
        return text.to_owned();
    };
    let cut = &text[..end];
    let cut = cut.rsplit_once(' ').map_or(cut, |(cut, _)| cut);
    format!("{cut} …")
}

/// Returns the words to search for. Numbers are left out, except those as long as an HTTP status.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words
        .filter(|word| match word.bytes().all(|byte| byte.is_ascii_digit()) {
            true => word.len() == 3,
            false => word.chars().count() > 1,
        })
        .map(str::to_lowercase)
}
