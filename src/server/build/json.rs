//! JSON of the guide's files.

use super::markdown::{Element, Node};

/// Returns a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns nodes as JSON: texts as strings, elements as `[tag, attributes or null, content…]`.
pub(crate) fn nodes(nodes: &[Node]) -> String {
    let each = nodes.iter().map(|node| match node {
        Node::Text(text) => quoted(text),
        Node::Element(element) => of_element(element),
    });
    each.collect::<Vec<_>>().join(",")
}

fn of_element(element: &Element) -> String {
    let attributes = element.attributes.iter();
    let attributes = attributes.map(|(name, value)| format!("\"{name}\":{}", quoted(value)));
    let attributes = match attributes.collect::<Vec<_>>().join(",") {
        none if none.is_empty() => "null".to_owned(),
        some => format!("{{{some}}}"),
    };
    let separator = if element.inner.is_empty() { "" } else { "," };
    let inner = nodes(&element.inner);
    format!("[\"{}\",{attributes}{separator}{inner}]", element.tag)
}
