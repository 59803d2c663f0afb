//! Lists the files of `ui/`, so that `http/dashboard` carries whatever is there: a new file needs no change in Rust.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

/// The pages, from this crate.
const PAGES: &str = "../../ui";
/// The files that browsers ask for; what lies beside them (notes, editors' copies) stays out of the program.
const SERVED: [&str; 10] = [
    "html", "css", "js", "json", "svg", "png", "ico", "woff2", "txt", "md",
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={PAGES}");
    let mut names = Vec::new();
    collect(Path::new(PAGES), "", &mut names)?;
    names.sort();
    let mut list = "&[\n".to_owned();
    for name in names {
        let path = format!("/{PAGES}/{name}");
        let line = writeln!(
            list,
            "({name:?}, include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),"
        );
        line.map_err(io::Error::other)?;
    }
    list.push(']');
    #[expect(
        clippy::disallowed_methods,
        reason = "Cargo tells a build script so where it may write"
    )]
    let place = std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&place).join("pages.rs"), list)
}

/// Adds the names of all files of a folder, as they stand in addresses.
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
