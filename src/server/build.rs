//! Build script that embeds `ui/` for `http/dashboard`: every file found there (a new one needs no change in Rust),
//! modules joined into one script, styles into one sheet, and the guide made of `docs/`. Files are embedded only in their
//! compressed forms, at the highest level.

#[path = "build/guide.rs"]
mod guide;
#[path = "build/join.rs"]
mod join;
#[path = "build/json.rs"]
mod json;
#[path = "build/markdown.rs"]
mod markdown;
#[path = "build/search.rs"]
mod search;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::{fs, io};

use flate2::Compression;
use flate2::read::GzEncoder;

/// Dashboard sources, relative to this crate.
const PAGES: &str = "../../ui";
/// Extensions of the files that browsers request; anything else (notes, editor backups) is not embedded.
const SERVED: [&str; 10] = [
    "html", "css", "js", "json", "svg", "png", "ico", "woff2", "txt", "md",
];
/// Entry module; the joined script takes its place.
const ENTRY: &str = "app/main.js";
/// Entry page of the dashboard.
const INDEX: &str = "index.html";
/// Name of the joined style sheet.
const STYLE: &str = "app.css";
/// Translations, kept as separate files because a browser loads at most one.
const WORDS: &str = "app/words/";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={PAGES}");
    #[expect(
        clippy::disallowed_methods,
        reason = "Cargo tells a build script so where it may write"
    )]
    let place = std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let place = Path::new(&place);
    let mut list = "&[\n".to_owned();
    for (at, (name, bytes)) in carried()?.iter().enumerate() {
        fs::write(place.join(format!("page{at}.gz")), gzipped(bytes)?)?;
        fs::write(place.join(format!("page{at}.br")), packed(bytes)?)?;
        let file = |end: &str| format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/page{at}{end}\"))");
        let line = writeln!(list, "({name:?}, {}, {}),", file(".gz"), file(".br"));
        line.map_err(io::Error::other)?;
    }
    list.push(']');
    fs::write(place.join("pages.rs"), list)
}

/// Returns all files to embed, sorted by name, with modules and styles joined and comments stripped.
fn carried() -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut names = Vec::new();
    collect(Path::new(PAGES), "", &mut names)?;
    let read = |name: &str| fs::read_to_string(Path::new(PAGES).join(name));
    let index = read(INDEX)?;
    let (mut modules, mut styles) = (join::Modules::new(), String::new());
    let mut files = BTreeMap::new();
    for name in names {
        let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
        // Vendored files stay byte-identical: a test compares their hashes.
        let is_own = !name.starts_with("vendor/");
        match kind {
            "css" if is_own => {}
            "js" if name.starts_with("app/") && !name.starts_with(WORDS) => {
                modules.insert(name.clone(), read(&name)?);
            }
            "js" if is_own => {
                files.insert(name.clone(), join::stripped(&read(&name)?).into());
            }
            _ => {
                files.insert(name.clone(), fs::read(Path::new(PAGES).join(&name))?);
            }
        }
    }
    // Keep the page's order: on equal specificity the later rule wins.
    for name in index
        .lines()
        .filter_map(named)
        .filter(|name| name.ends_with(".css") && !files.contains_key(*name))
    {
        styles.push_str(&join::stripped(&read(name)?));
    }
    let script = join::joined(&modules, ENTRY).map_err(io::Error::other)?;
    files.insert(ENTRY.to_owned(), script.into());
    files.insert(STYLE.to_owned(), styles.into());
    let is_there = |line: &&str| named(line).is_none_or(|name| files.contains_key(name));
    let index: String = index.split_inclusive('\n').filter(is_there).collect();
    files.insert(INDEX.to_owned(), index.into());
    files.extend(guide::files().map_err(io::Error::other)?);
    Ok(files)
}

/// Returns the file under `/ui/` that a line of the page refers to.
fn named(line: &str) -> Option<&str> {
    line.split("=\"/ui/").nth(1)?.split('"').next()
}

/// Compresses with gzip, which every browser accepts.
fn gzipped(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    GzEncoder::new(bytes, Compression::best()).read_to_end(&mut packed)?;
    Ok(packed)
}

/// Compresses with Brotli, which browsers accept over secure connections.
fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let params = brotli::enc::BrotliEncoderParams {
        quality: 11,
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut packed, &params)?;
    Ok(packed)
}

/// Collects the names of all files in a folder, as they appear in URLs.
fn collect(folder: &Path, before: &str, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or(".");
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{before}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), names)?;
        } else if path
            .extension()
            .and_then(OsStr::to_str)
            .is_some_and(|kind| SERVED.contains(&kind))
        {
            names.push(name);
        }
    }
    Ok(())
}
