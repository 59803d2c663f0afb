//! Guide in the dashboard: the pages of `docs/` that users read, in the order of the site, each as a tree of elements,
//! with a list of all pages and the search indexes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::join::joined_path;
use super::json;
use super::markdown::{self, Element, Node};
use super::search;

/// Root of the repository, relative to this crate.
const ROOT: &str = "../..";
/// Configuration of the site, whose navigation lists the pages.
const SITE: &str = "deploy/site/mkdocs.yml";
/// Section of the navigation that is not for users.
const LEFT_OUT: &str = "Develop";
/// Page of the site that lies outside of `docs/`, with its file.
const OUTSIDE: (&str, &str) = ("examples.md", "examples/README.md");
/// Part of a file's name that marks a Chinese page.
const CHINESE: &str = ".zh-CN";
/// Length of a summary, in characters.
const SUMMARY_MAX: usize = 200;

/// Files of the guide by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Anchors of a page's headings in order: in the file, and in the guide, where they are the same in all languages.
type Anchors = Vec<(String, String)>;

/// Page in one language.
struct Page {
    /// Path from the repository's root.
    file: String,
    title: String,
    content: Element,
    anchors: Anchors,
}

/// Page of the guide by its name in addresses, in both languages where there is a Chinese one.
struct Entry {
    name: String,
    english: Page,
    chinese: Option<Page>,
}

/// Addresses of the guide by file, with the anchors of each.
type Places = BTreeMap<String, (String, Anchors)>;

/// Returns the guide's files, with names below `guide/`.
pub(crate) fn files() -> Result<Files, String> {
    let mut chapters = chapters(&read(SITE)?)?;
    let places: Places = chapters
        .iter()
        .flat_map(|(_, entries)| entries)
        .flat_map(places)
        .collect();
    let (mut files, mut lists) = (Files::new(), Vec::new());
    let (mut english, mut chinese) = (Vec::new(), Vec::new());
    let mut count = 0;
    for (chapter, entries) in &mut chapters {
        for (at, entry) in entries.iter_mut().enumerate() {
            let name = format!("guide/{}", entry.name);
            english.extend(entry.english.finish(count + at, &places));
            files.insert(format!("{name}.json"), entry.english.json().into());
            if let Some(page) = &mut entry.chinese {
                chinese.extend(page.finish(count + at, &places));
                files.insert(format!("{name}{CHINESE}.json"), page.json().into());
            }
        }
        count += entries.len();
        let list: Vec<String> = entries.iter().map(listed).collect();
        lists.push(format!("[{},[{}]]", json::quoted(chapter), list.join(",")));
    }
    for (name, rows) in [("list", lists), ("index", english), ("index.zh-CN", chinese)] {
        files.insert(
            format!("guide/{name}.json"),
            format!("[{}]", rows.join(",")).into(),
        );
    }
    Ok(files)
}

/// Returns a page's row in the list: its name, then title and first sentence in each language.
fn listed(entry: &Entry) -> String {
    let mut texts = vec![json::quoted(&entry.name)];
    for page in entry.pages() {
        texts.extend([&page.title, &page.summary()].map(|text| json::quoted(text)));
    }
    format!("[{}]", texts.join(","))
}

/// Returns the addresses of a page's files.
fn places(entry: &Entry) -> impl Iterator<Item = (String, (String, Anchors))> {
    entry.pages().map(|page| {
        (
            page.file.clone(),
            (format!("/guide/{}", entry.name), page.anchors.clone()),
        )
    })
}

/// Reads the navigation's sections with their pages. Pages that this version doesn't have are left out, as on the site.
fn chapters(site: &str) -> Result<Vec<(String, Vec<Entry>)>, String> {
    let mut chapters: Vec<(String, Vec<Entry>)> = Vec::new();
    for line in site.lines().skip_while(|line| *line != "nav:").skip(1) {
        let item = line
            .trim_start()
            .strip_prefix("- ")
            .ok_or_else(|| format!("{SITE}: {line}"))?;
        if let Some(title) = item.strip_suffix(':') {
            chapters.push((title.to_owned(), Vec::new()));
        } else if let Some((_, entries)) = chapters.last_mut().filter(|(title, _)| title != LEFT_OUT) {
            entries.extend(entry(item)?);
        }
    }
    chapters.retain(|(_, entries)| !entries.is_empty());
    Ok(chapters)
}

fn entry(item: &str) -> Result<Option<Entry>, String> {
    let name = item.trim_end_matches(".md");
    let file = match item == OUTSIDE.0 {
        true => OUTSIDE.1.to_owned(),
        false => format!("docs/{item}"),
    };
    let exists = |file: &str| Path::new(ROOT).join(file).is_file();
    if !exists(&file) {
        return Ok(None);
    }
    let other = format!("docs/{name}{CHINESE}.md");
    let mut english = Page::read(file)?;
    let mut chinese = exists(&other).then(|| Page::read(other)).transpose()?;
    if let Some(page) = &mut chinese {
        page.take_anchors(&english);
        // The language of the dashboard chooses, not a link on the page.
        page.content.remove_links(item);
        english.content.remove_links(&format!("{name}{CHINESE}.md"));
    }
    Ok(Some(Entry {
        name: name.to_owned(),
        english,
        chinese,
    }))
}

/// Reads a file of the repository and has Cargo run this script again when it changes.
fn read(file: &str) -> Result<String, String> {
    println!("cargo::rerun-if-changed={ROOT}/{file}");
    fs::read_to_string(Path::new(ROOT).join(file)).map_err(|error| format!("{file}: {error}"))
}

impl Entry {
    fn pages(&self) -> impl Iterator<Item = &Page> {
        [Some(&self.english), self.chinese.as_ref()].into_iter().flatten()
    }
}

impl Page {
    fn read(file: String) -> Result<Page, String> {
        let mut content = markdown::parsed(&read(&file)?).map_err(|error| format!("{file}: {error}"))?;
        let at = content
            .inner
            .iter()
            .position(|node| matches!(node, Node::Element(one) if one.tag == "h1"));
        let Some(Node::Element(heading)) = at.map(|at| content.inner.remove(at)) else {
            return Err(format!("{file}: no title"));
        };
        Ok(Page {
            title: heading.line(),
            anchors: content.ids().map(|id| (id.clone(), id.clone())).collect(),
            content,
            file,
        })
    }

    /// Gives each heading the anchor of its original, so that an address is right in all languages.
    fn take_anchors(&mut self, original: &Page) {
        for ((_, id), (_, original)) in self.anchors.iter_mut().zip(&original.anchors) {
            id.clone_from(original);
        }
        for (id, (_, taken)) in self.content.ids().zip(&self.anchors) {
            id.clone_from(taken);
        }
    }

    /// Relinks the page; returns its entries in the search index, where it has this number.
    fn finish(&mut self, at: usize, places: &Places) -> Vec<String> {
        self.relink(places);
        search::entries(at, &self.title, &self.content)
    }

    /// Returns the page as JSON: its title, then its content.
    fn json(&self) -> String {
        format!(
            "[{},{}]",
            json::quoted(&self.title),
            json::nodes(&self.content.inner)
        )
    }

    /// Turns links by path into links of the guide. Files that the guide doesn't have lose their links.
    fn relink(&mut self, places: &Places) {
        let (file, anchors) = (&self.file, &self.anchors);
        self.content.relink(&|link| {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            if path.contains(':') {
                return Some(link.to_owned());
            }
            let (address, anchors) = match path {
                "" => ("", anchors),
                path => places
                    .get(&joined_path(file, path))
                    .map(|(address, anchors)| (&**address, anchors))?,
            };
            match anchor {
                "" => Some(address.to_owned()),
                anchor => anchors
                    .iter()
                    .find(|(own, _)| own == anchor)
                    .map(|(_, id)| format!("{address}#{id}")),
            }
        });
    }

    /// Returns the first sentence, empty if it is too long for a list.
    fn summary(&self) -> String {
        let mut elements = self.content.inner.iter().filter_map(|node| match node {
            Node::Element(element) if element.tag == "p" => Some(element.line()),
            _ => None,
        });
        let text = elements.next().unwrap_or_default();
        let end = [". ", "。"].iter().filter_map(|end| text.find(end)).min();
        let sentence = text[..end.unwrap_or(text.len())].trim_end_matches(['.', ':', '：']);
        match sentence.chars().count() {
            0..=SUMMARY_MAX => sentence.to_owned(),
            _ => String::new(),
        }
    }
}
