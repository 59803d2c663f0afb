//! Bundler that joins the dashboard's modules into one script: forty small files compress half as well as one, and
//! each costs a request.
//!
//! Understands modules only as they are written here: each import or export begins a line and has it to itself.
//! Anything else fails the build. Names, lines and strings stay unchanged so that errors can be debugged in a
//! browser.

use std::collections::{BTreeMap, BTreeSet};

/// Path prefix of the dashboard's own modules.
const OWN: &str = "app/";

/// Modules by their path from `ui/`, as text.
pub(crate) type Modules = BTreeMap<String, String>;

/// Names imported from files outside the bundle, by path; visible to all modules of the script.
type Outside = BTreeMap<String, BTreeSet<String>>;

/// Joins `modules` into one script that behaves like `entry` and takes its place. Each module runs once, on first
/// use.
pub(crate) fn joined(modules: &Modules, entry: &str) -> Result<String, String> {
    let (mut outside, mut script) = (Outside::new(), String::new());
    for (name, text) in modules.iter().filter(|(name, _)| *name != entry) {
        let (body, exports) = rewritten(name, text, modules, &mut outside)?;
        let exports = exports.join(",");
        script += &format!("make['{name}']=()=>{{\n{body}return{{{exports}}}}};\n");
    }
    let (body, _) = rewritten(entry, &modules[entry], modules, &mut outside)?;
    let mut head = String::new();
    for (path, names) in &outside {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (names, path) = (names.join(","), between(entry, path));
        head += &format!("import{{{names}}}from'{path}';\n");
    }
    head.push_str("const made={},make={},use=(name)=>made[name]??=make[name]();\n");
    Ok(format!("{head}{script}{body}"))
}

/// Strips blank lines, indentation and comments that occupy whole lines.
pub(crate) fn stripped(text: &str) -> String {
    let (mut is_comment, mut kept) = (false, String::new());
    for line in text.lines().map(str::trim_start) {
        let is_begun = line.starts_with("/*");
        is_comment |= is_begun;
        if !is_comment && !line.is_empty() && !line.starts_with("// ") {
            kept.push_str(line);
            kept.push('\n');
        }
        is_comment &= !line.contains("*/");
    }
    kept
}

/// Rewrites a module's imports as constants; returns the text and the exported names. Imports of files outside
/// `modules` go to `outside`.
fn rewritten(
    name: &str,
    text: &str,
    modules: &Modules,
    outside: &mut Outside,
) -> Result<(String, Vec<String>), String> {
    let (mut body, mut exports) = (String::new(), Vec::new());
    for line in stripped(text).lines() {
        let strange = || format!("{name}: a line that the build doesn't understand: {line}");
        let line = if line.starts_with("import ") {
            imported(name, line, modules, outside).ok_or_else(strange)?
        } else if let Some(what) = line.strip_prefix("export ") {
            exports.push(exported(what).ok_or_else(strange)?);
            what.to_owned()
        } else {
            fetched(name, line, modules)
        };
        body.push_str(&line);
        body.push_str(if line.is_empty() { "" } else { "\n" });
    }
    Ok((body, exports))
}

/// Rewrites `import { a as b } from './x.js';` as `const{a:b}=use('app/x.js');`; returns an empty string for files
/// outside the bundle.
fn imported(name: &str, line: &str, modules: &Modules, outside: &mut Outside) -> Option<String> {
    let (what, path) = line
        .strip_prefix("import ")?
        .strip_suffix("';")?
        .split_once(" from '")?;
    let path = joined_path(name, path);
    let names = what.strip_prefix("{ ").and_then(|names| names.strip_suffix(" }"));
    if !modules.contains_key(&path) {
        let names = match names {
            Some(names) => names.split(", ").map(str::to_owned).collect(),
            None => vec![format!("default as {what}")],
        };
        outside.entry(path).or_default().extend(names);
        return Some(String::new());
    }
    let taken = match (names, what.strip_prefix("* as ")) {
        (Some(names), _) => format!("{{{}}}", names.replace(", ", ",").replace(" as ", ":")),
        (None, Some(all)) => all.to_owned(),
        (None, None) => return None,
    };
    Some(format!("const {taken}=use('{path}');"))
}

/// Returns the name that an export statement declares.
fn exported(what: &str) -> Option<String> {
    let what = what.strip_prefix("async ").unwrap_or(what);
    let (kind, rest) = what.split_once(' ')?;
    let is_known = ["function", "const", "class"].contains(&kind);
    let end = rest.find(|at: char| !at.is_alphanumeric() && at != '_')?;
    (is_known && end > 0).then(|| rest[..end].to_owned())
}

/// Rewrites dynamic imports in a line: bundled modules are taken from the bundle, others imported from their own
/// path.
fn fetched(name: &str, line: &str, modules: &Modules) -> String {
    let Some((before, rest)) = line.split_once("import(`") else {
        return line.to_owned();
    };
    let fixed = rest.find("${").unwrap_or(0);
    let path = joined_path(name, &rest[..fixed]);
    let is_here = modules.keys().any(|one| one.starts_with(&path));
    let rest = fetched(name, &rest[fixed..], modules);
    if is_here {
        format!("{before}(async(name)=>use(name))(`{path}{rest}")
    } else {
        format!("{before}import(`{}{rest}", between(OWN, &path))
    }
}

/// Resolves a relative path against the file that contains it.
pub(crate) fn joined_path(beside: &str, path: &str) -> String {
    let mut parts: Vec<&str> = beside.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the relative path by which a file in [`OWN`] imports another file.
fn between(own: &str, path: &str) -> String {
    debug_assert!(own.starts_with(OWN), "{own}");
    path.strip_prefix(OWN)
        .map_or_else(|| format!("../{path}"), |rest| format!("./{rest}"))
}
