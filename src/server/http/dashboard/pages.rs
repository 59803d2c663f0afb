//! Files of the dashboard, either embedded in the program or read from a folder during development.
//!
//! Embedded files have URLs with a version, `/ui/v-5f3a…/app/main.js`: browsers cache them forever, and a relative
//! import loads a file of the same version. A folder is read again on each request.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use axum::http::{HeaderMap, Method};
use axum::response::Response;

use super::file::{File, Keep, hash, unpacked};

/// Entry page of the dashboard.
const INDEX: &str = "index.html";
/// Prefix of the version in a URL.
const VERSION: &str = "v-";
/// Folder of the guide. The build script makes its pages, so a folder of the dashboard's sources lacks them.
const GUIDE: &str = "guide/";
/// Embedded files made by the build script: name, content packed with gzip, and with Brotli.
static CARRIED: &[(&str, &[u8], &[u8])] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));
/// Embedded files ready to be sent. Built when a browser first asks.
static READY: LazyLock<Ready> = LazyLock::new(|| Ready::of(CARRIED));

/// Source of the dashboard's files.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Folder to read the files from; `None` for the embedded files.
    folder: Option<PathBuf>,
}

impl Pages {
    /// Serves the files of a folder.
    ///
    /// # Errors
    /// If the folder doesn't exist or has no `index.html`.
    pub fn of_folder(folder: &Path) -> io::Result<Pages> {
        let folder = folder.canonicalize()?;
        read(&folder, INDEX)?;
        Ok(Pages { folder: Some(folder) })
    }

    /// Returns the response with the entry page.
    pub(super) fn index(&self, method: &Method, asked: &HeaderMap) -> Option<Response> {
        self.file(INDEX, method, asked)
    }

    /// Returns the response with the file at this path below `/ui/`, `None` if there is no such file.
    pub(super) fn file(&self, name: &str, method: &Method, asked: &HeaderMap) -> Option<Response> {
        let (version, name) = split(name);
        let Some(folder) = &self.folder else {
            return READY.answer(version, name, method, asked);
        };
        match read(folder, name) {
            Ok(bytes) => Some(File::plain(name, bytes.into()).answer(method, asked, Keep::AskAgain)),
            Err(_) if name.starts_with(GUIDE) => READY.answer(None, name, method, asked),
            Err(error) => {
                tracing::debug!(name, %error, "file not found in the dashboard's folder");
                None
            }
        }
    }
}

/// Splits a path into the version, if it has one, and the file name.
fn split(name: &str) -> (Option<&str>, &str) {
    let parts = name.strip_prefix(VERSION).and_then(|rest| rest.split_once('/'));
    parts.map_or((None, name), |(version, name)| (Some(version), name))
}

/// Reads a file of the folder. Follows links, but only to files inside the folder.
fn read(folder: &Path, name: &str) -> io::Result<Vec<u8>> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !Path::new(name).components().all(is_plain) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let path = folder.join(name).canonicalize()?;
    match path.starts_with(folder) && path.is_file() {
        true => std::fs::read(path),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Embedded files with their common version.
#[derive(Debug)]
struct Ready {
    /// Files sorted by name.
    files: Vec<(&'static str, File)>,
    version: String,
}

impl Ready {
    fn of(carried: &'static [(&'static str, &'static [u8], &'static [u8])]) -> Ready {
        let file = |(name, gzip, brotli): &(&'static str, &'static [u8], &'static [u8])| {
            (*name, File::embedded(name, gzip, brotli))
        };
        let mut files: Vec<(&'static str, File)> = carried.iter().map(file).collect();
        let all: String = files
            .iter()
            .map(|(name, file)| format!("{name} {}\n", file.hash()))
            .collect();
        let version = hash(all.as_bytes());
        for (name, file) in &mut files {
            let carried = carried
                .iter()
                .find(|(carried, ..)| carried == name && *carried == INDEX);
            if let Some((_, index, _)) = carried {
                *file = File::packed(INDEX, versioned(&unpacked(index), &version).into());
            }
        }
        Ready { files, version }
    }

    fn answer(
        &self,
        version: Option<&str>,
        name: &str,
        method: &Method,
        asked: &HeaderMap,
    ) -> Option<Response> {
        let at = self.files.binary_search_by_key(&name, |(name, _)| name).ok()?;
        // During a rolling upgrade, other nodes link to other versions: serve this node's file, uncached.
        let keep = match version {
            Some(version) if version == self.version => Keep::ForGood,
            _ => Keep::AskAgain,
        };
        Some(self.files[at].1.answer(method, asked, keep))
    }
}

/// Adds this version to all URLs of the page.
fn versioned(index: &[u8], version: &str) -> Vec<u8> {
    String::from_utf8_lossy(index)
        .replace("=\"/ui/", &format!("=\"/ui/{VERSION}{version}/"))
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::http::{HeaderValue, header};
    use sha2::{Digest, Sha256};

    use super::*;

    /// All that a browser may ever fetch but the guide, in both languages. Unit: bytes.
    const ALL_PACKED_MAX: usize = 104 << 10;
    /// The same for a browser that doesn't take Brotli: over plain HTTP from another machine. Unit: bytes.
    const ALL_GZIP_MAX: usize = 127 << 10;

    fn text(name: &str) -> Option<String> {
        let found = CARRIED.iter().find(|(carried, ..)| *carried == name);
        found.and_then(|(_, gzip, _)| String::from_utf8(unpacked(gzip)).ok())
    }

    async fn body(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .expect("read");
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[test]
    fn the_dashboard_is_small() {
        for (coding, most) in [("br, gzip", ALL_PACKED_MAX), ("gzip", ALL_GZIP_MAX)] {
            let mut taken = HeaderMap::new();
            taken.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(coding));
            let mut sizes = BTreeMap::new();
            let is_own = |name: &str| !name.ends_with(".md") && !name.starts_with(GUIDE);
            for (name, file) in READY.files.iter().filter(|(name, _)| is_own(name)) {
                let answer = file.answer(&Method::GET, &taken, Keep::AskAgain);
                let length = answer.headers()[header::CONTENT_LENGTH].to_str().expect("text");
                sizes.insert(*name, length.parse::<usize>().expect("a number"));
            }
            let all: usize = sizes.values().sum();
            assert!(
                all > most / 2 && all <= most,
                "{coding}: {all} bytes of {most}: {sizes:#?}"
            );
        }
    }

    /// The build made one script of all modules: what else it imports is there, and no module is left.
    #[test]
    fn all_modules_are_one_script() {
        let script = text("app/main.js").expect("there");
        let imports: Vec<&str> = script
            .lines()
            .filter_map(|line| line.strip_prefix("import{")?.split('\'').nth(1))
            .collect();
        assert!(!imports.is_empty(), "{imports:?}");
        for path in imports {
            assert!(text(&path.replace("../", "")).is_some(), "{path}");
        }
        assert!(
            !script
                .lines()
                .any(|line| line.starts_with("import ") || line.starts_with("export "))
        );
        let modules = CARRIED
            .iter()
            .filter(|(name, ..)| name.starts_with("app/") && name.ends_with(".js"));
        let modules: Vec<&str> = modules.map(|(name, ..)| *name).collect();
        assert_eq!(
            modules,
            ["app/main.js", "app/words/messages.zh-CN.js", "app/words/zh-CN.js"]
        );
    }

    #[tokio::test]
    async fn what_the_page_names_is_there_and_kept_for_good() {
        let none = HeaderMap::new();
        let index = body(Pages::default().index(&Method::GET, &none).expect("there")).await;
        let named: Vec<&str> = index
            .split("=\"/ui/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(named.len() >= 2, "{index}");
        for name in named {
            let file = Pages::default().file(name, &Method::GET, &none);
            let file = file.unwrap_or_else(|| panic!("no file {name}"));
            let kept = file.headers()[header::CACHE_CONTROL].to_str().expect("text");
            assert!(kept.contains("immutable"), "{name}: {kept}");
            let (_, plain) = split(name);
            for asked in [plain.to_owned(), format!("v-0123/{plain}")] {
                let file = Pages::default().file(&asked, &Method::GET, &none).expect("there");
                assert_eq!(file.headers()[header::CACHE_CONTROL], "no-cache", "{asked}");
            }
        }
        assert!(Pages::default().file("nothing.js", &Method::GET, &none).is_none());
    }

    /// By a path from the root the same module would be there twice: with a version and without.
    #[test]
    fn modules_import_each_other_by_relative_paths() {
        for (name, ..) in CARRIED.iter().filter(|(name, ..)| name.ends_with(".js")) {
            let text = text(name).expect("text");
            for start in [
                "from '/",
                "from \"/",
                "import('/",
                "import(\"/",
                "import '/",
                "import \"/",
            ] {
                assert!(!text.contains(start), "{name} has {start}");
            }
        }
    }

    #[test]
    fn what_others_wrote_is_what_the_list_says() {
        let vendored = CARRIED
            .iter()
            .filter(|(name, ..)| name.starts_with("vendor/") && !name.ends_with(".md"));
        let list = text("vendor/VENDOR.md").unwrap_or_default();
        for (name, gzip, _) in vendored {
            let file = name.trim_start_matches("vendor/");
            let rows: Vec<Vec<&str>> = list
                .lines()
                .map(|line| {
                    line.split('|')
                        .map(|cell| cell.trim().trim_matches('`'))
                        .collect()
                })
                .collect();
            let row = rows
                .iter()
                .find(|row| row.get(1).is_some_and(|cell| *cell == file || cell == name));
            let row = row.unwrap_or_else(|| panic!("vendor/VENDOR.md has no row of {file}"));
            let cells = &row[1..row.len() - 1];
            assert!(
                cells.len() >= 4 && cells.iter().all(|cell| !cell.is_empty()),
                "{row:?}"
            );
            let sum: String = Sha256::digest(unpacked(gzip))
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(
                cells.last().copied(),
                Some(&*sum),
                "the content of {file} is another"
            );
        }
    }

    #[tokio::test]
    async fn a_folder_is_read_at_each_request_and_nothing_outside_of_it() {
        let place = tempfile::tempdir().expect("a directory");
        let folder = place.path().join("ui");
        std::fs::create_dir_all(folder.join("app")).expect("made");
        assert!(Pages::of_folder(&folder).is_err(), "without a page");
        let none = HeaderMap::new();
        std::fs::write(folder.join(INDEX), "<a href=\"/ui/app/x.js\">").expect("written");
        std::fs::write(folder.join("app/x.js"), "1").expect("written");
        std::fs::write(place.path().join("secret.js"), "secret").expect("written");
        std::os::unix::fs::symlink(place.path().join("secret.js"), folder.join("out.js")).expect("linked");
        std::os::unix::fs::symlink(folder.join("app/x.js"), folder.join("in.js")).expect("linked");
        let pages = Pages::of_folder(&folder).expect("it has a page");
        let get = |name: &str| pages.file(name, &Method::GET, &none);
        let index = body(pages.index(&Method::GET, &none).expect("there")).await;
        assert_eq!(index, "<a href=\"/ui/app/x.js\">", "as it is written");
        assert_eq!(body(get("app/x.js").expect("there")).await, "1");
        std::fs::write(folder.join("app/x.js"), "2").expect("written");
        assert_eq!(body(get("in.js").expect("there")).await, "2");
        for outside in [
            "out.js",
            "../secret.js",
            "app/../../secret.js",
            "/etc/passwd",
            "app",
            "",
            "./app/x.js",
        ] {
            assert!(get(outside).is_none(), "{outside}");
        }
    }
}
