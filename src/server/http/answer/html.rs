//! HTML pages for people: one layout, one style, no scripts, no external resources.

use std::fmt::Write as _;

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Style of all pages; their content security policy contains its hash.
const STYLE: &str = "\
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow:auto;padding:.6rem;border:1px solid #8888}\
h1{font-size:1.6rem}h2{margin-top:2.5rem}h3{margin:1.8rem 0 .3rem}table{border-collapse:collapse;display:block;overflow-x:auto}\
td,th{border:1px solid #8888;padding:.25rem .5rem;text-align:left;vertical-align:top}\
nav a{margin-right:1rem}summary{cursor:pointer}.m{font-weight:600}.d{opacity:.75}";

/// Builds a whole page; `body` is HTML, `title` is plain text.
pub(crate) fn page(title: &str, body: &str) -> Response {
    let title = escaped(title);
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} · Windrow</title>\
        <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\n\
        <body><nav><a href=\"/docs\">API</a><a href=\"/problems\">Problems</a></nav>\n<main>{body}</main></body></html>\n"
    );
    let mut response = Html(text).into_response();
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response
            .headers_mut()
            .insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Escapes text for HTML, including attribute values.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Renders the subset of Markdown used in our own texts: paragraphs, lists, `code`, **bold**.
pub(crate) fn rendered(markdown: &str) -> String {
    let (mut html, mut in_list) = (String::new(), false);
    for line in markdown.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let item = line.strip_prefix("- ");
        if item.is_some() != in_list {
            html.push_str(if in_list { "</ul>\n" } else { "<ul>\n" });
            in_list = !in_list;
        }
        let (tag, text) = item.map_or(("p", line), |item| ("li", item));
        let text = inline(text);
        // Writing to a String never fails.
        writeln!(html, "<{tag}>{text}</{tag}>").ok();
    }
    if in_list {
        html.push_str("</ul>\n");
    }
    html
}

/// Renders inline Markdown of one line: `code` and **bold**.
pub(crate) fn inline(text: &str) -> String {
    let code = paired(&escaped(text), "`", "code");
    paired(&code, "**", "strong")
}

/// Wraps text between two marks in a tag; an unpaired mark stays as it is.
fn paired(text: &str, mark: &str, tag: &str) -> String {
    let parts: Vec<&str> = text.split(mark).collect();
    let mut html = String::new();
    for (at, part) in parts.iter().enumerate() {
        let is_inside = at % 2 == 1;
        match (is_inside, at + 1 == parts.len()) {
            (true, false) => html.push_str(&format!("<{tag}>{part}</{tag}>")),
            (true, true) => html.push_str(&format!("{mark}{part}")),
            (false, _) => html.push_str(part),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_stays_text() {
        let html = rendered("a <b> `x<y>` **bold**\n- one\n- two `open\nend");
        assert_eq!(
            html,
            "<p>a &lt;b&gt; <code>x&lt;y&gt;</code> <strong>bold</strong></p>\n<ul>\n<li>one</li>\n\
            <li>two `open</li>\n</ul>\n<p>end</p>\n"
        );
        assert_eq!(escaped("\"'&"), "&quot;&#39;&amp;");
    }

    #[test]
    fn the_policy_of_a_page_allows_its_style_and_nothing_else() {
        let response = page("<t>", "x");
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .expect("text")
            .to_owned();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
