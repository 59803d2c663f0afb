//! Markdown page as a tree of elements. The dashboard builds its nodes from the tree, so that no text is ever parsed as
//! HTML in a browser.

use std::collections::BTreeMap;
use std::mem::take;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

/// Part of a page.
pub(crate) enum Node {
    Text(String),
    Element(Element),
}

/// Element as browsers know it. An element without a tag is replaced by its content.
#[derive(Default)]
pub(crate) struct Element {
    pub(crate) tag: &'static str,
    pub(crate) attributes: BTreeMap<&'static str, String>,
    pub(crate) inner: Vec<Node>,
}

impl Element {
    fn new(tag: &'static str) -> Element {
        Element {
            tag,
            ..Element::default()
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Element {
        self.attributes.insert(name, value.into());
        self
    }

    /// Appends a node. Adjacent texts become one, and elements without a tag are dissolved.
    fn push(&mut self, node: Node) {
        match (self.inner.last_mut(), node) {
            (Some(Node::Text(before)), Node::Text(text)) => before.push_str(&text),
            (_, Node::Element(element)) if element.tag.is_empty() => {
                element.inner.into_iter().for_each(|node| self.push(node));
            }
            (_, node) => self.inner.push(node),
        }
    }

    /// Returns true for a heading, except the title.
    pub(crate) fn is_heading(&self) -> bool {
        matches!(self.tag, "h2" | "h3" | "h4")
    }

    /// Removes the links to this address with their text, and paragraphs that consist of nothing else.
    pub(crate) fn remove_links(&mut self, address: &str) {
        self.inner.retain_mut(|node| {
            let Node::Element(element) = node else { return true };
            element.remove_links(address);
            let is_link = element.attributes.get("href").is_some_and(|href| href == address);
            !is_link && (element.tag != "p" || !element.inner.is_empty())
        });
    }

    /// Rewrites the addresses of all links; those without a new address become plain text.
    pub(crate) fn relink(&mut self, address: &impl Fn(&str) -> Option<String>) {
        for node in take(&mut self.inner) {
            match node {
                Node::Element(mut element) => {
                    element.relink(address);
                    if let Some(href) = element.attributes.get_mut("href") {
                        match address(href) {
                            Some(new) => *href = new,
                            None => element.tag = "",
                        }
                    }
                    self.push(Node::Element(element));
                }
                text => self.push(text),
            }
        }
    }

    /// Returns the anchors of the headings.
    pub(crate) fn ids(&mut self) -> impl Iterator<Item = &mut String> {
        self.inner.iter_mut().filter_map(|node| match node {
            Node::Element(element) => element.attributes.get_mut("id"),
            Node::Text(_) => None,
        })
    }

    /// Returns the text on one line.
    pub(crate) fn line(&self) -> String {
        let mut text = String::new();
        self.text(&mut text);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Appends the text, with a space behind each block.
    pub(crate) fn text(&self, to: &mut String) {
        for node in &self.inner {
            match node {
                Node::Text(text) => to.push_str(text),
                Node::Element(element) => element.text(to),
            }
        }
        if !matches!(self.tag, "a" | "code" | "em" | "strong") {
            to.push(' ');
        }
    }
}

/// Parses a page into an element that holds all of it. Headings get their anchors as `id`, links keep their addresses.
pub(crate) fn parsed(text: &str) -> Result<Element, String> {
    let (mut open, mut is_head) = (vec![Element::new("div")], false);
    let mut taken = BTreeMap::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        let node = match event {
            Event::Start(tag) => {
                is_head = matches!(tag, Tag::TableHead) || is_head && !matches!(tag, Tag::TableRow);
                open.push(element(&tag, is_head)?);
                continue;
            }
            Event::End(_) => {
                let mut closed = open.pop().ok_or("a tag that was never opened")?;
                if closed.is_heading() {
                    let id = anchor(&closed.line(), &mut taken);
                    closed.attributes.insert("id", id);
                }
                Node::Element(closed)
            }
            Event::Text(text) => Node::Text(text.into_string()),
            Event::Code(code) => {
                let mut element = Element::new("code");
                element.push(Node::Text(code.into_string()));
                Node::Element(element)
            }
            Event::SoftBreak => Node::Text(" ".to_owned()),
            Event::Html(html) if html.trim_start().starts_with("<!--") => continue,
            event => return Err(format!("Markdown that the guide doesn't support: {event:?}")),
        };
        open.last_mut().ok_or("a tag closed twice")?.push(node);
    }
    open.pop().ok_or_else(|| "a page without a root".to_owned())
}

fn element(tag: &Tag<'_>, is_head: bool) -> Result<Element, String> {
    Ok(Element::new(match tag {
        Tag::Paragraph => "p",
        Tag::Heading { level, .. } => heading(*level)?,
        Tag::BlockQuote(_) => "blockquote",
        // Wide code scrolls, and what scrolls must be reachable with the keyboard.
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => return Ok(Element::new("pre").with("tabindex", "0")),
        Tag::List(None) => "ul",
        Tag::List(Some(_)) => "ol",
        Tag::Item => "li",
        Tag::Table(_) => "table",
        Tag::TableHead | Tag::TableRow => "tr",
        Tag::TableCell if is_head => "th",
        Tag::TableCell => "td",
        Tag::Emphasis => "em",
        Tag::Strong => "strong",
        Tag::Link { dest_url, .. } => return Ok(Element::new("a").with("href", &**dest_url)),
        // Pictures would double the size of the program's pages: their descriptions stay.
        Tag::Image { .. } => return Ok(Element::new("span").with("class", "picture")),
        Tag::HtmlBlock => "",
        tag => return Err(format!("Markdown that the guide doesn't support: {tag:?}")),
    }))
}

fn heading(level: HeadingLevel) -> Result<&'static str, String> {
    match level {
        HeadingLevel::H1 => Ok("h1"),
        HeadingLevel::H2 => Ok("h2"),
        HeadingLevel::H3 => Ok("h3"),
        HeadingLevel::H4 => Ok("h4"),
        level => Err(format!("a heading of level {level}")),
    }
}

/// Returns the anchor of a heading, as hosts of Markdown derive it: a repeated one has a number.
fn anchor(heading: &str, taken: &mut BTreeMap<String, usize>) -> String {
    let text = heading.to_lowercase().replace(' ', "-");
    let anchor: String = text
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_".contains(*c))
        .collect();
    let count = taken.entry(anchor.clone()).or_default();
    *count += 1;
    match *count {
        1 => anchor,
        count => format!("{anchor}-{}", count - 1),
    }
}
