//! One source text as a syntax tree: imports, crates, purity, sizes, banned words.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Fault, layers};

/// The most lines of a file outside its inline test modules.
const FILE_LINES_MAX: usize = 400;
/// The most lines of a function.
const FN_LINES_MAX: usize = 50;

/// The one place that reads clocks, and the one that reads the environment.
const CLOCK_HOME: &str = "src/host/clock.rs";
const ENV_HOME: &str = "src/config/load/mod.rs";
/// Built and run by Cargo, which tells them by the environment what is built and where they may write.
const BUILD_SCRIPTS: [&str; 2] = ["src/cli/build.rs", "src/server/build.rs"];

/// All faults of a text, were it this file.
pub(crate) fn faults(file: &str, text: &str, crates: &BTreeSet<String>) -> Vec<Fault> {
    let mut judge = Judge::new(file, crates);
    match syn::parse_file(text) {
        Ok(tree) => {
            let is_file_under_test = judge.in_tests;
            judge.local_modules = tree.items.iter().filter_map(module_name).collect();
            judge.visit_file(&tree);
            let lines = text.lines().count() - test_lines(&tree.items);
            if judge.is_limited && !is_file_under_test && lines > FILE_LINES_MAX {
                judge.add(
                    Span::call_site(),
                    "file-size",
                    format!("{lines} lines; at most {FILE_LINES_MAX}"),
                );
            }
        }
        Err(error) => judge.add(error.span(), "syntax", error.to_string()),
    }
    judge.faults
}

fn module_name(item: &syn::Item) -> Option<String> {
    if let syn::Item::Mod(module) = item {
        Some(module.ident.to_string())
    } else {
        None
    }
}

fn test_lines(items: &[syn::Item]) -> usize {
    let modules = items.iter().filter_map(|item| {
        if let syn::Item::Mod(module) = item {
            Some(module)
        } else {
            None
        }
    });
    modules
        .filter(|module| is_test_only(&module.attrs))
        .map(|module| lines_of(module.span()))
        .sum()
}

fn lines_of(span: Span) -> usize {
    span.end().line + 1 - span.start().line
}

fn is_test_only(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("test")
            || attr.path().is_ident("cfg")
                && attr
                    .parse_args::<syn::Path>()
                    .is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Walks a file and remembers where it is.
struct Judge<'a> {
    file: &'a str,
    crates: &'a BTreeSet<String>,
    /// The crate, and the module of it that is being walked; none where the import rule doesn't hold.
    module: Option<(&'a str, Vec<String>)>,
    /// Modules that the file declares: their names hide crates.
    local_modules: BTreeSet<String>,
    in_tests: bool,
    /// Whether `Instant` is tokio's here: the start of a timer, which a paused clock controls.
    has_tokio_instant: bool,
    /// Whether the size limits and the bans of production code hold.
    is_limited: bool,
    faults: Vec<Fault>,
}

impl<'a> Judge<'a> {
    fn new(file: &'a str, crates: &'a BTreeSet<String>) -> Judge<'a> {
        let is_limited = file.starts_with("src/") || file.starts_with("migration/src/");
        let in_tests = !is_limited || file.split('/').any(|part| part == "tests" || part == "tests.rs");
        let module = layers::modules_of(file);
        Judge {
            file,
            crates,
            module,
            local_modules: BTreeSet::new(),
            in_tests,
            has_tokio_instant: false,
            is_limited,
            faults: Vec::new(),
        }
    }

    fn add(&mut self, span: Span, rule: &'static str, text: String) {
        let line = span.start().line;
        self.faults.push(Fault {
            file: self.file.to_owned(),
            line,
            rule,
            text,
        });
    }

    fn is_pure(&self) -> bool {
        !self.in_tests && self.file.starts_with("src/core/")
    }

    /// A path as it is written, `crate::a::b`, `super::c`, `tokio::d`.
    fn on_path(&mut self, path: &[String], span: Span) {
        self.check_words(path, span);
        let Some(first) = path.first() else { return };
        if self.in_tests {
            return;
        }
        if let Some(target) = self.resolve(path) {
            let from = self.module.as_ref();
            let fault = from.and_then(|(krate, from)| layers::import_fault(krate, from, &target));
            if let Some(text) = fault {
                self.add(span, "import", text);
            }
        } else if self.is_crate(first, path.len()) {
            if let Some(text) = layers::crate_fault(self.file, first) {
                self.add(span, "crate", text);
            } else if let Some(text) = layers::purity_fault(path).filter(|_| self.is_pure()) {
                self.add(span, "pure", text);
            }
        }
    }

    fn is_crate(&self, first: &str, len: usize) -> bool {
        let is_known = ["std", "core", "alloc"].contains(&first) || self.crates.contains(first);
        len > 1 && is_known && !self.local_modules.contains(first)
    }

    /// The path from the root of the crate; none for a path that leaves it or can't be told.
    fn resolve(&self, path: &[String]) -> Option<Vec<String>> {
        let mut base = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone()?.1,
            "super" => {
                let (_, mut parent) = self.module.clone()?;
                parent.pop();
                parent
            }
            _ => return None,
        };
        for part in &path[1..] {
            if part == "super" {
                base.pop();
            } else {
                base.push(part.clone());
            }
        }
        Some(base)
    }

    /// Functions that only one place may call, by the last two parts of their path.
    fn check_words(&mut self, path: &[String], span: Span) {
        if !self.is_limited || self.in_tests {
            return;
        }
        let [.., owner, name] = path else { return };
        let is_timer = owner == "Instant" && (self.has_tokio_instant || path[0] == "tokio");
        let is_clock = ["Instant", "SystemTime"].contains(&owner.as_str()) && name == "now" && !is_timer;
        let is_env =
            owner == "env" && ["var", "var_os", "vars", "vars_os", "set_var"].contains(&name.as_str());
        if is_clock && self.file != CLOCK_HOME {
            self.add(
                span,
                "clock",
                format!("{owner}::now; only {CLOCK_HOME} reads time"),
            );
        }
        if is_env && self.file != ENV_HOME && !BUILD_SCRIPTS.contains(&self.file) {
            self.add(
                span,
                "env",
                format!("env::{name}; only {ENV_HOME} reads the environment"),
            );
        }
    }

    fn on_use(&mut self, prefix: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.on_use(prefix, &path.tree);
                prefix.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.on_use(prefix, tree)),
            syn::UseTree::Name(name) => self.on_used(prefix, Some(&name.ident), name.span()),
            syn::UseTree::Rename(rename) => self.on_used(prefix, Some(&rename.ident), rename.span()),
            syn::UseTree::Glob(glob) => self.on_used(prefix, None, glob.span()),
        }
    }

    fn on_used(&mut self, prefix: &[String], last: Option<&syn::Ident>, span: Span) {
        let mut path = prefix.to_vec();
        // `self` at the end names the module before it; a glob all that is in it.
        path.extend(last.map(ToString::to_string).filter(|name| name != "self"));
        if last.is_none() || path.len() == 1 {
            path.push("*".to_owned());
        }
        self.has_tokio_instant |= path == ["tokio", "time", "Instant"];
        self.on_path(&path, span);
    }

    /// The arguments of a macro are no tree; paths and banned calls are found among their tokens.
    fn on_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut path: Vec<String> = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Ident(ident) => {
                    path.push(ident.to_string());
                    let is_call = at > 0 && is_punct(&tokens[at - 1], '.');
                    self.on_word(&ident.to_string(), is_call, tokens.get(at + 1), ident.span());
                    if !(is_joined(&tokens, at + 1)) {
                        let whole = std::mem::take(&mut path);
                        if whole.len() > 1 {
                            self.on_path(&whole, ident.span());
                        }
                    }
                }
                TokenTree::Group(group) => self.on_tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn on_word(&mut self, word: &str, is_call: bool, next: Option<&TokenTree>, span: Span) {
        let is_macro = next.is_some_and(|next| is_punct(next, '!'));
        if word == "unwrap" && is_call {
            self.on_unwrap(span);
        } else if is_macro {
            self.on_macro(word, span);
        }
    }

    fn on_unwrap(&mut self, span: Span) {
        if self.is_limited && !self.in_tests {
            self.add(
                span,
                "unwrap",
                "say with expect why it can't fail, or return the error".to_owned(),
            );
        }
    }

    fn on_macro(&mut self, name: &str, span: Span) {
        if ["todo", "unimplemented", "dbg"].contains(&name) {
            self.add(span, "unfinished", format!("{name}! must not be left behind"));
        }
    }

    fn on_function(&mut self, attrs: &[syn::Attribute], signature: &syn::Signature, body: Span) {
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("ignore")) {
            self.add(
                attr.span(),
                "ignored",
                "a test that isn't run proves nothing".to_owned(),
            );
        }
        if self.in_tests || !self.is_limited {
            return;
        }
        let lines = body.end().line + 1 - signature.span().start().line;
        if lines > FN_LINES_MAX {
            let text = format!("{} has {lines} lines; at most {FN_LINES_MAX}", signature.ident);
            self.add(signature.span(), "fn-size", text);
        }
        if signature.asyncness.is_some() && self.is_pure() {
            self.add(signature.span(), "pure", "core is pure: no async".to_owned());
        }
    }
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_joined(tokens: &[TokenTree], at: usize) -> bool {
    tokens
        .get(at..at + 2)
        .is_some_and(|pair| pair.iter().all(|token| is_punct(token, ':')))
        && matches!(tokens.get(at + 2), Some(TokenTree::Ident(_)))
}

impl<'ast> Visit<'ast> for Judge<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let was_in_tests = self.in_tests;
        self.in_tests |= is_test_only(&module.attrs);
        if let Some((_, path)) = &mut self.module {
            path.push(module.ident.to_string());
        }
        visit::visit_item_mod(self, module);
        if let Some((_, path)) = &mut self.module {
            path.pop();
        }
        self.in_tests = was_in_tests;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.on_use(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.on_path(&parts, path.span());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        if let Some(last) = mac.path.segments.last() {
            self.on_macro(&last.ident.to_string(), mac.path.span());
        }
        self.on_tokens(mac.tokens.clone());
        visit::visit_macro(self, mac);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "unwrap" {
            self.on_unwrap(call.method.span());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let pattern = if let syn::Pat::Type(typed) = &local.pat {
            &*typed.pat
        } else {
            &local.pat
        };
        if matches!(pattern, syn::Pat::Wild(_)) && self.is_limited && !self.in_tests {
            self.add(
                local.span(),
                "dropped",
                "name what is dropped and say why".to_owned(),
            );
        }
        visit::visit_local(self, local);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let was_in_tests = self.in_tests;
        self.in_tests |= is_test_only(&function.attrs);
        self.on_function(&function.attrs, &function.sig, function.block.span());
        visit::visit_item_fn(self, function);
        self.in_tests = was_in_tests;
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.on_function(&function.attrs, &function.sig, function.block.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.on_function(&function.attrs, &function.sig, body.span());
        }
        visit::visit_trait_item_fn(self, function);
    }
}
