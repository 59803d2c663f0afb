//! Tests of the embedded guide: the pages of the site's navigation, their links, the weight of the search.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::{HeaderMap, Method, header};
use serde_json::Value;

use super::Pages;

/// Largest search index, packed. A browser fetches it at the first search. Unit: bytes.
const INDEX_MAX: usize = 72 << 10;
/// Ids of the dashboard's own elements.
const TAKEN: [&str; 3] = ["app", "main", "side"];
const SITE: &str = include_str!("../../../../deploy/site/mkdocs.yml");

async fn bytes(name: &str, coding: &'static str) -> Vec<u8> {
    let mut asked = HeaderMap::new();
    asked.insert(header::ACCEPT_ENCODING, coding.parse().expect("a value"));
    let response = Pages::default().file(name, &Method::GET, &asked);
    let response = response.unwrap_or_else(|| panic!("no file {name}"));
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
    body.expect("read").to_vec()
}

async fn json(name: &str) -> Value {
    let bytes = bytes(&format!("guide/{name}.json"), "identity").await;
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Rows of all pages in the list.
async fn listed() -> Vec<Value> {
    let chapters = json("list").await;
    let pages = rows(&chapters).iter().flat_map(|chapter| rows(&chapter[1]));
    pages.cloned().collect()
}

/// Names of all files with a page: in English, and in Chinese where there is a translation.
async fn files() -> Vec<(String, String)> {
    let pages = listed().await;
    let files = pages.iter().flat_map(|page| {
        let name = page[0].as_str().expect("a name");
        let ends: &[&str] = if page[3].is_string() {
            &["", ".zh-CN"]
        } else {
            &[""]
        };
        ends.iter()
            .map(move |end| (name.to_owned(), format!("{name}{end}")))
    });
    files.collect()
}

/// Collects the values of an attribute below a node.
fn attribute(name: &str, node: &Value, found: &mut Vec<String>) {
    found.extend(node[1][name].as_str().map(str::to_owned));
    rows(node)
        .iter()
        .skip(2)
        .for_each(|inner| attribute(name, inner, found));
}

fn attributes(name: &str, page: &Value) -> Vec<String> {
    let mut found = Vec::new();
    rows(page)
        .iter()
        .for_each(|node| attribute(name, node, &mut found));
    found
}

/// Addresses in the guide with the anchors of each page.
async fn anchors() -> BTreeMap<String, BTreeSet<String>> {
    let mut anchors = BTreeMap::new();
    for (name, file) in files().await {
        let ids = attributes("id", &json(&file).await);
        let kept = anchors.entry(format!("/guide/{name}"));
        let kept = kept.or_insert_with(|| ids.iter().cloned().collect::<BTreeSet<String>>());
        assert!(
            ids.iter().all(|id| kept.contains(id)),
            "{file} has its own anchors: {ids:?}"
        );
        assert_eq!(
            ids.len(),
            kept.len(),
            "{file} has an anchor twice, or lacks one: {ids:?}"
        );
    }
    anchors
}

fn resolves(link: &str, here: &str, anchors: &BTreeMap<String, BTreeSet<String>>) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let ids = anchors.get(if path.is_empty() { here } else { path });
    ids.is_some_and(|ids| anchor.is_empty() || ids.contains(anchor))
}

#[tokio::test]
async fn the_guide_has_the_pages_that_the_site_names_for_users() {
    let users = SITE.split("- Develop:").next().unwrap_or_default();
    let named = users
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.strip_suffix(".md"));
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let is_there =
        |name: &&str| *name == "examples" || std::fs::exists(format!("{docs}/{name}.md")).expect("readable");
    let named: Vec<&str> = named.filter(is_there).collect();
    let pages = listed().await;
    let listed: Vec<&str> = pages.iter().filter_map(|page| page[0].as_str()).collect();
    assert_eq!(listed, named);
    let chinese = pages.iter().filter(|page| page[3].is_string()).count();
    assert!(listed.len() > 20 && chinese >= 4, "{pages:?}");
}

#[tokio::test]
async fn every_link_of_the_guide_and_into_it_leads_somewhere() {
    let anchors = anchors().await;
    for (name, file) in files().await {
        let here = format!("/guide/{name}");
        for link in attributes("href", &json(&file).await) {
            let is_outside = link.starts_with("https://");
            assert!(is_outside || resolves(&link, &here, &anchors), "{file}: {link}");
        }
    }
    let script = Pages::default().file("app/main.js", &Method::GET, &HeaderMap::new());
    let script = axum::body::to_bytes(script.expect("there").into_body(), 1 << 20).await;
    let script = String::from_utf8(script.expect("read").to_vec()).expect("text");
    let links = script
        .split("'/guide/")
        .skip(1)
        .filter_map(|rest| rest.split('\'').next());
    let links: Vec<String> = links
        .filter(|link| !link.contains(':'))
        .map(|link| format!("/guide/{link}"))
        .collect();
    assert!(links.len() > 5, "{links:?}");
    for link in links {
        assert!(resolves(&link, "", &anchors), "{link}");
    }
}

#[tokio::test]
async fn anchors_are_plain_and_not_those_of_the_frame() {
    for (address, ids) in anchors().await {
        for id in ids {
            assert!(id.is_ascii() && !TAKEN.contains(&&*id), "{address}#{id}");
        }
    }
}

#[tokio::test]
async fn the_search_knows_every_heading_and_is_small() {
    let (pages, anchors) = (listed().await, anchors().await);
    for (name, has_page) in [("index", true), ("index.zh-CN", false)] {
        let index = json(name).await;
        let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for section in rows(&index) {
            let at = section[0].as_u64().expect("a number") as usize;
            let (page, id) = (
                pages[at][0].as_str().expect("a name"),
                section[1].as_str().expect("an anchor"),
            );
            known
                .entry(format!("/guide/{page}"))
                .or_default()
                .insert(id.to_owned());
        }
        for (address, ids) in &anchors {
            let Some(known) = known.get(address) else {
                assert!(!has_page, "{name} lacks {address}");
                continue;
            };
            let found: BTreeSet<&str> = known
                .iter()
                .map(String::as_str)
                .filter(|id| !id.is_empty())
                .collect();
            let wanted: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
            assert_eq!(found, wanted, "{name}: {address}");
        }
        for coding in ["br", "gzip"] {
            let size = bytes(&format!("guide/{name}.json"), coding).await.len();
            assert!(size <= INDEX_MAX, "{name}, {coding}: {size} bytes");
        }
    }
}
