#!/usr/bin/env python3
"""Measures the house: size, types, circles, comments and words of the product, as a table with the goals beside it.

usage: scripts/house.sh [COMMIT…] [--json] [--circles] [--self-test]

COMMIT       any commit; a column for each, in the given order. `.` or nothing is the work tree.
--json       every figure with its parts, as JSON.
--circles    the largest circle of each crate: its files, and the imports that, removed singly, make it smallest.
--self-test  shows the counters on a short text; ends with 1 where one is wrong.

Counted are the Rust files of `src/` and `migration/`, the product. `#[cfg(test)]` items, the files of
`#[cfg(test)] mod tests;` with all files below them, and folders named `tests` are no part of it. Rust is read as tokens, so
that words in strings and comments are no code.

- Product lines: all lines of the files of `src/`, blank lines and comments included. `migration/` stands apart.
- Methods on one type: functions of all `impl` blocks of a type, also those of traits, by crate and name. Fields are those
  of a struct, or the variants of an enum.
- Wire types: structs and enums of `src/server/http` and `src/api` with Serialize, Deserialize or both, derived or by hand.
- Untyped look-ups: `value["member"]`, `.get("member")` and `.pointer("/member")` in `src/cli`, `src/client` and the files
  of `src` itself. Tokens have no types: a map with such keys is counted too.
- Files that name an attribute: product files with the word as an identifier or a part of one (`default_priority`), or in a
  string literal; comments don't count.
- Circles: strongly connected files of a crate. An edge is a path that begins with `crate`, `super` or `self`, in a `use` or
  in the code, and leads to the file of the innermost module that it names. `mod` alone is no edge.
- Documentation comments: a run of `///` lines, or of `//!` lines, is one comment.
- Comments inside functions: lines with nothing but a `//` comment inside a body, as a share of product lines.
- Spans: functions from a `Duration` and at most one more argument to a text. A heuristic; what it finds is in `--json`.
- Prose literals: string literals of three words or more, without attributes and SQL. Those in log macros, and those in
  `expect`, `assert!` and the like, which nobody reads while all is well, are counted apart.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTRIBUTES = ("priority", "start_at", "canary")
FOREIGN_STARTS = ("What", "How", "Whether", "Who", "Its", "It", "Of", "Where")
WORDLESS_CRATES = ("core", "engine", "store")
# The formatter, the syntax of settings, a whole message about a span, and what Redis reads.
SPAN_PRINTERS = ("src/words/format.rs", "src/core/settings/text/mod.rs", "src/core/task/lifecycle/note.rs", "src/store/redis/mod.rs")
# Words of databases and operating systems that are recognized, statements, and examples of a syntax.
FOREIGN_WORDS = (
    "src/core/schedule/cron.rs", "src/core/settings/text/forms.rs", "src/core/template/request.rs",
    "src/engine/ports/mod.rs", "src/store/redis/fault.rs", "src/store/sql/dialect/",
)
PROSE_CRATES = ("core", "engine", "store", "handlers")
LOG_MACROS = {"trace", "debug", "info", "warn", "error", "event", "span", "info_span", "debug_span", "error_span", "warn_span", "trace_span"}
QUIET_CALLS = {"expect", "expect_err"}
QUIET_MACROS = {"assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "unreachable", "panic"}

# ---------------------------------------------------------------------------------------------------------------- tokens

TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<doc>///(?!/)[^\n]*|//![^\n]*)
    |(?P<comment>//[^\n]*)
    |(?P<block>/\*)
    |(?P<raw>(?:b|c)?r(?P<hashes>\#*)"(?:.*?)"(?P=hashes))
    |(?P<str>(?:b|c)?"(?:[^"\\]|\\.)*")
    |(?P<char>b?'(?:[^'\\\n]|\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}|.))')
    |(?P<life>'[A-Za-z_]\w*)
    |(?P<num>\d(?:[\w]|\.(?=\d)|(?<=[eE])[+-](?=\d))*)
    |(?P<id>(?:r\#)?[A-Za-z_]\w*)
    |(?P<op>::|->|=>|.)""",
    re.VERBOSE | re.DOTALL,
)

Token = collections.namedtuple("Token", "kind text line last")


def tokenize(text):
    """Tokens of a Rust text with their first and last line, comments included."""
    tokens, at, line = [], 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        kind, end = match.lastgroup, match.end()
        if kind == "hashes":
            kind = "raw"
        if kind == "block":
            depth, end = 1, at + 2
            while depth and end < len(text):
                if text.startswith("/*", end):
                    depth, end = depth + 1, end + 2
                elif text.startswith("*/", end):
                    depth, end = depth - 1, end + 2
                else:
                    end += 1
            inner = text[at:end]
            kind = "doc" if re.match(r"/\*(\*(?![*/])|!)", inner) else "comment"
        piece = text[at:end]
        last = line + piece.count("\n")
        if kind != "space":
            tokens.append(Token("str" if kind == "raw" else kind, piece, line, last))
        at, line = end, last
    return tokens


def content(literal):
    """Text between the quotes of a string literal."""
    return literal[literal.index('"') + 1 : literal.rindex('"')]


OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


def closing(tokens, at):
    """Index of the bracket that closes the one at `at`."""
    depth = 0
    for index in range(at, len(tokens)):
        token = tokens[index]
        if token.kind != "op":
            continue
        if token.text in OPEN:
            depth += 1
        elif token.text in CLOSE:
            depth -= 1
            if depth == 0:
                return index
    return len(tokens) - 1


def attribute_end(tokens, at):
    """Index behind the attribute at `at` (`#[…]` or `#![…]`), or `at` where there is none."""
    if tokens[at].text != "#":
        return at
    inner = at + 1
    if inner < len(tokens) and tokens[inner].text == "!":
        inner += 1
    if inner < len(tokens) and tokens[inner].text == "[":
        return closing(tokens, inner) + 1
    return at


def only_in_tests(tokens):
    """Tells an attribute that keeps a thing out of the product: `cfg(test)`, also as a part of `all`."""
    words = [token.text for token in tokens if token.kind != "doc"]
    if "cfg" not in words[:4]:
        return False
    inner = words[words.index("cfg") + 1 :]
    if inner[:3] == ["(", "test", ")"]:
        return True
    return inner[:3] == ["(", "all", "("] and "test" in inner and "not" not in inner


def thing_end(tokens, at):
    """Index behind the item, statement, field or match arm that begins at `at`, its attributes included."""
    while at < len(tokens) and (tokens[at].kind in ("doc", "comment") or attribute_end(tokens, at) > at):
        at = max(at + 1, attribute_end(tokens, at))
    words = []
    index = at
    while index < len(tokens) and len(words) < 8:
        if tokens[index].text in ("(",):
            index = closing(tokens, index) + 1
            continue
        words.append(tokens[index].text)
        index += 1
    first = next((word for word in words if word not in ("pub", "async", "unsafe", "default")), "")
    function = "fn" in words[:6]
    to_semicolon = first in ("use", "static", "type", "let") or (first == "const" and not function) or words[:2] == ["extern", "crate"]
    braces = not to_semicolon and (function or first in ("mod", "struct", "enum", "union", "trait", "impl", "extern", "macro_rules"))
    angle = 0
    index = at
    while index < len(tokens):
        text, kind = tokens[index].text, tokens[index].kind
        if kind == "op":
            if text in OPEN:
                index = closing(tokens, index)
                if text == "{" and (braces or (not to_semicolon and tokens[at].text in ("if", "for", "while", "loop", "match", "{"))):
                    follows = tokens[index + 1].text if index + 1 < len(tokens) else ""
                    return index + 1 + (follows == "," and not braces)
                if text == "{" and not to_semicolon and "=>" in [token.text for token in tokens[at:index]]:
                    follows = tokens[index + 1].text if index + 1 < len(tokens) else ""
                    return index + 1 + (follows == ",")
            elif text in CLOSE:
                return index
            elif text == ";":
                return index + 1
            elif text == "<":
                angle += 1
            elif text == ">":
                angle = max(0, angle - 1)
            elif text == "," and not to_semicolon and not braces and angle == 0:
                return index + 1
        index += 1
    return index


def split_tests(tokens):
    """Product tokens of a file, the modules that it declares for tests only, and the lines of its tests."""
    product, modules, lines, at = [], [], set(), 0
    while at < len(tokens):
        end = attribute_end(tokens, at)
        if end == at:
            product.append(tokens[at])
            at += 1
        elif only_in_tests(tokens[at:end]):
            if tokens[at + 1].text == "!":
                return [], modules, set(range(1, tokens[-1].last + 1))
            first = tokens[at].line
            # Documentation goes with the thing that it describes.
            while product and product[-1].kind == "doc" and not product[-1].text.startswith(("//!", "/*!")):
                first = product.pop().line
            behind = thing_end(tokens, end)
            texts = [token.text for token in tokens[end:behind] if token.kind not in ("doc", "comment")]
            if "mod" in texts and texts[-1] == ";":
                path = next((content(t.text) for t in tokens[end:behind] if t.kind == "str"), None)
                modules.append((texts[texts.index("mod") + 1], path))
            lines.update(range(first, tokens[behind - 1].last + 1))
            at = behind
        else:
            product.extend(tokens[at:end])
            at = end
    return product, modules, lines


# ----------------------------------------------------------------------------------------------------------------- items

class Source:
    """One product file: tokens, and the declarations of its items."""

    def __init__(self, path, text):
        self.path = path
        self.tokens, self.test_modules, test_lines = split_tests(tokenize(text))
        self.lines = len(text.splitlines()) - len(test_lines)
        self.code = [token for token in self.tokens if token.kind not in ("doc", "comment")]
        self.modules = []  # (inline path, name, #[path])
        self.inline = []  # (first, behind, inline path) of `mod x { … }`
        self.uses = []  # (inline path, path as a list, its line)
        self.imports = []  # (first, behind) of the `use`s
        self.methods = collections.Counter()  # type → functions in `impl` blocks
        self.types = []  # (kind, name, fields, derives)
        self.implements = []  # (trait, type)
        self.functions = []  # (name, first code index, first of the body, behind)
        self.items(0, len(self.code), (), None)

    def items(self, at, end, inside, owner):
        """Reads the items between two indexes of the code, of a file, a module, an `impl` or a trait."""
        code = self.code
        while at < end:
            begin, derives, path = at, [], None
            while at < end and attribute_end(code, at) > at:
                behind = attribute_end(code, at)
                words = [token.text for token in code[at:behind]]
                if "derive" in words:
                    derives += [word for word in words if re.match(r"[A-Z]\w*$", word)]
                if words[2] == "path" and words[3] == "=":
                    path = content(code[behind - 2].text)
                at = behind
            if at >= end:
                return
            keyword, start = self.keyword(at, end)
            behind = max(thing_end(code, at), at + 1)
            if keyword == "mod":
                name, follows = code[start + 1].text, code[start + 2].text
                if follows == "{":
                    self.inline.append((start + 2, behind, inside + (name,)))
                    self.items(start + 3, behind - 1, inside + (name,), None)
                else:
                    self.modules.append((inside, name, path))
            elif keyword == "use":
                self.imports.append((start, behind))
                self.use(start + 1, behind - 1, inside, [])
            elif keyword in ("struct", "enum", "union"):
                self.type(keyword, start + 1, behind, derives)
            elif keyword in ("impl", "trait"):
                self.implementation(keyword, start + 1, behind, inside)
            elif keyword == "fn":
                if owner:
                    self.methods[owner] += 1
                self.function(start + 1, behind)
            at = behind

    def keyword(self, at, end):
        """First word of an item that says its kind, and where it stands."""
        while at < end:
            text = self.code[at].text
            if text == "pub" and at + 1 < end and self.code[at + 1].text == "(":
                at = closing(self.code, at + 1) + 1
            elif text in ("pub", "async", "unsafe", "default") or (text == "const" and "fn" in [t.text for t in self.code[at + 1 : at + 4]]):
                at += 1
            elif text == "extern" and self.code[at + 1].kind == "str" and self.code[at + 2].text == "fn":
                at += 2
            else:
                return text, at
        return "", at

    def use(self, at, end, inside, prefix):
        """Reads a tree of imports into single paths."""
        code, path = self.code, list(prefix)
        while at < end:
            text = code[at].text
            if text == "{":
                close, begin, index = closing(code, at), at + 1, at + 1
                while index <= close:
                    if code[index].text == "{":
                        index = closing(code, index)
                    elif code[index].text in (",", "}"):
                        if begin < index:
                            self.use(begin, index, inside, path)
                        begin = index + 1
                    index += 1
                return
            if text == "as":
                break
            if text != "::":
                path.append(text)
            at += 1
        if path:
            self.uses.append((inside, path, code[min(at, len(code) - 1)].line))

    def type(self, keyword, at, behind, derives):
        """Reads a struct or enum: name and number of fields or variants."""
        code, name, index = self.code, self.code[at].text, at + 1
        while index < behind and code[index].text not in ("{", "(", ";"):
            index += 1
        fields = 0
        if index < behind and code[index].text in ("{", "("):
            end, index = closing(code, index), index + 1
            while index < end:
                fields += 1
                index = self.behind_comma(index, end)
        self.types.append((keyword, name, fields, derives))

    def behind_comma(self, at, end):
        angle = 0
        while at < end:
            text = self.code[at].text
            if text in OPEN:
                at = closing(self.code, at)
            elif text == "<":
                angle += 1
            elif text == ">":
                angle -= 1
            elif text == "," and angle <= 0:
                return at + 1
            at += 1
        return at

    def implementation(self, keyword, at, behind, inside):
        """Reads an `impl` block or a trait with its functions."""
        code, open_at = self.code, at
        while open_at < behind and code[open_at].text not in ("{", ";"):
            open_at += 1
        header, angle = [], 0
        for token in code[at:open_at]:
            if token.text == "where" and angle == 0:
                break
            if token.text == "<":
                angle += 1
            elif token.text == ">":
                angle -= 1
            elif angle == 0:
                header.append(token.text)
        owner = None
        if keyword == "impl":
            trait = header[: header.index("for")] if "for" in header else []
            names = [word for word in header[len(trait) :] if re.match(r"[A-Za-z_]\w*$", word) and word not in ("for", "mut", "dyn")]
            owner = names[-1] if names else None
            named = [word for word in trait if re.match(r"[A-Za-z_]\w*$", word)]
            if named and owner:
                self.implements.append((named[-1], owner))
        self.items(open_at + 1, behind - 1, inside, owner)

    def function(self, at, behind):
        code, index = self.code, at
        while index < behind and code[index].text not in ("{", ";"):
            index = closing(code, index) if code[index].text in ("(", "[") else index
            index += 1
        if index < behind and code[index].text == "{":
            self.functions.append((code[at].text, at, index, behind))

    def inside(self, at):
        """Inline module in which a token stands."""
        return max((path for first, behind, path in self.inline if first <= at < behind), key=len, default=())

    def paths(self):
        """Every path that begins with `crate`, `super` or `self`, of imports and of the code, with its inline module."""
        for inside, path, line in self.uses:
            if path[0] in ("crate", "super", "self", "$crate"):
                yield inside, path, line
        code, imports = self.code, {at for first, behind in self.imports for at in range(first, behind)}
        for at, token in enumerate(code[:-2]):
            if token.text in ("crate", "super", "self") and token.kind == "id" and code[at + 1].text == "::":
                if at in imports or (at and code[at - 1].text in ("::", "in")):
                    continue
                path, index = [token.text], at + 1
                while index + 1 < len(code) and code[index].text == "::" and code[index + 1].kind == "id":
                    path.append(code[index + 1].text)
                    index += 2
                yield self.inside(at), path, token.line


# ------------------------------------------------------------------------------------------------------------------ house

class House:
    """All product files of a tree, by crate."""

    def __init__(self, root):
        self.root = root
        self.sources, self.crates, self.tests = {}, {}, set()
        paths = []
        for top in ("src", "migration"):
            for folder, folders, files in os.walk(os.path.join(root, top)):
                folders[:] = sorted(f for f in folders if f not in ("tests", "target"))
                paths += [os.path.relpath(os.path.join(folder, f), root) for f in sorted(files) if f.endswith(".rs")]
        self.find_crates(paths)
        everything = {path: Source(path, self.read(path)) for path in paths}
        for path, source in everything.items():
            for name, given in source.test_modules:
                self.mark_tests(path, name, given, everything)
        self.sources = {path: source for path, source in everything.items() if path not in self.tests}

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def find_crates(self, paths):
        """Folder and root file of each crate; the package of the tree itself is `src`."""
        for path in paths:
            if os.path.basename(path) not in ("lib.rs", "main.rs"):
                continue
            folder = os.path.dirname(path)
            manifest = [f for f in (folder, os.path.dirname(folder)) if f and os.path.exists(os.path.join(self.root, f, "Cargo.toml"))]
            if manifest or folder == "src":
                name = os.path.basename(manifest[0]) if manifest else "windrow"
                if name not in self.crates or path.endswith("lib.rs"):
                    self.crates[name] = (folder, path)

    def crate(self, path):
        holders = [(len(folder), name) for name, (folder, _) in self.crates.items() if path.startswith(folder + "/")]
        return max(holders)[1] if holders else "windrow"

    @staticmethod
    def children(path, crate_root):
        """Folder in which the modules of a file lie."""
        folder, name = os.path.split(path)
        return folder if name in ("mod.rs", "main.rs", "lib.rs") or path == crate_root else os.path.join(folder, name[:-3])

    def mark_tests(self, path, name, given, everything):
        below = self.children(path, None)
        heads = [os.path.normpath(os.path.join(os.path.dirname(path), given))] if given else [os.path.join(below, name + ".rs"), os.path.join(below, name, "mod.rs")]
        for head in heads:
            if head in everything:
                self.tests.add(head)
                inner = self.children(head, None) + "/"
                if not head.endswith("/mod.rs") or inner != os.path.dirname(path) + "/":
                    self.tests.update(other for other in everything if other.startswith(inner))

    # -- size

    def lines(self):
        by_crate = collections.Counter()
        for path, source in self.sources.items():
            by_crate[self.crate(path)] += source.lines
        return by_crate

    # -- types

    def methods(self):
        """Types with their functions, the largest first. Types of one name are apart where each file has its own."""
        homes, counts, files, fields = collections.defaultdict(dict), collections.Counter(), collections.defaultdict(set), {}
        for path, source in self.sources.items():
            for _, name, count, _ in source.types:
                homes[self.crate(path), name][path] = count
        for path, source in self.sources.items():
            for name, count in source.methods.items():
                crate = self.crate(path)
                found = homes[crate, name]
                home = path if path in found else next(iter(found)) if len(found) == 1 else None
                if home:
                    counts[crate, name, home] += count
                    files[crate, name, home].add(path)
                    fields[crate, name, home] = found[home]
        return [
            {"type": name, "crate": crate, "methods": count, "files": len(files[key]), "fields": fields[key]}
            for key, count in counts.most_common()
            for crate, name, _ in [key]
        ]

    def wire(self):
        kinds = {"serialize_only": 0, "deserialize_only": 0, "both": 0}
        for path, source in self.sources.items():
            if not path.startswith(("src/server/http/", "src/api/")):
                continue
            by_hand = collections.defaultdict(set)
            for trait, name in source.implements:
                by_hand[name].add(trait)
            for _, name, _, derives in source.types:
                traits = set(derives) | by_hand[name]
                ways = ("Serialize" in traits, "Deserialize" in traits)
                if any(ways):
                    kinds[{(True, False): "serialize_only", (False, True): "deserialize_only", (True, True): "both"}[ways]] += 1
        return kinds

    def lookups(self):
        names, by_file, forms = collections.Counter(), collections.Counter(), collections.Counter()
        for path, source in self.sources.items():
            if not (path.startswith(("src/cli/", "src/client/")) or os.path.dirname(path) == "src"):
                continue
            for form, name in lookups(source):
                names[name] += 1
                forms[form] += 1
                by_file[path] += 1
        return {"all": sum(names.values()), "names": len(names), "forms": dict(forms), "most": by_file.most_common(10)}

    def naming(self, word):
        """Files that name an attribute."""
        return sorted(path for path, source in self.sources.items() if names(source, word))

    # -- circles

    def module_files(self, crate):
        """Every module of a crate by its path, with its file; modules inside a file are the file."""
        folder, root = self.crates[crate]
        found, open_ = {}, [((), root)]
        while open_:
            module, path = open_.pop()
            if path not in self.sources or module in found:
                continue
            found[module] = path
            source = self.sources[path]
            for _, _, inner in source.inline:
                found[module + inner] = path
            for inside, name, given in source.modules:
                if given:
                    options = [os.path.normpath(os.path.join(os.path.dirname(path), given))]
                else:
                    below = os.path.join(self.children(path, root), *inside)
                    options = [os.path.join(below, name + ".rs"), os.path.join(below, name, "mod.rs")]
                open_ += [(module + inside + (name,), option) for option in options if option in self.sources]
        return found

    def edges(self, crate):
        """Imports between the files of a crate: (from, to) → lines."""
        modules = self.module_files(crate)
        edges = collections.defaultdict(list)
        for module, path in modules.items():
            source = self.sources[path]
            if any(module[len(module) - len(inner) :] == inner and modules.get(module[: len(module) - len(inner)]) == path for _, _, inner in source.inline):
                continue
            for inside, words, line in source.paths():
                target = resolve(module + inside, words, modules)
                if target and target != path:
                    edges[path, target].append(line)
        return edges

    def circles(self, crate):
        edges = self.edges(crate)
        graph = collections.defaultdict(set)
        for start, end in edges:
            graph[start].add(end)
        parts = sorted(components(graph), key=len, reverse=True)
        largest = parts[0] if parts and len(parts[0]) > 1 else []
        files = sum(1 for path in self.sources if self.crate(path) == crate)
        return {"largest": len(largest), "of": files, "files": sorted(largest)}, graph

    # -- words

    def comments(self):
        starts, short, total = collections.Counter(), 0, 0
        for source in self.sources.values():
            for text in doc_comments(source):
                words = text.split()
                if not words:
                    continue
                total += 1
                first = re.sub(r"\W+$", "", words[0])
                starts[first] += 1
                short += len(words) <= 3
        foreign = {word: starts[word] for word in FOREIGN_STARTS}
        shares = {"foreign_share": sum(foreign.values()) / max(1, total), "short_share": short / max(1, total)}
        return {"all": total, "foreign": sum(foreign.values()), "starts": foreign, "short": short, **shares}

    def inner_comments(self):
        lines = sum(inner_comment_lines(source) for source in self.sources.values())
        return {"lines": lines, "share": lines / max(1, sum(self.lines().values()))}

    def spans(self):
        found = []
        for path, source in self.sources.items():
            found += [f"{path}:{source.code[at].line} {name}" for name, at in span_printers(source)]
        return found

    def prose(self):
        counts = {crate: collections.Counter(prose=0, logs=0, quiet=0, sql=0) for crate in PROSE_CRATES}
        for path, source in self.sources.items():
            crate = self.crate(path)
            if crate in counts:
                for kind, _ in prose(source):
                    counts[crate][kind] += 1
        return counts


# --------------------------------------------------------------------------------------------------------------- counters

def lookups(source):
    """Members that are asked for by their name, of values without a type."""
    code = source.code
    for at, token in enumerate(code):
        if token.kind != "str" or token.text[0] != '"':
            continue
        before = [t.text for t in code[max(0, at - 3) : at]]
        after = code[at + 1].text if at + 1 < len(code) else ""
        if after == "]" and before[-1:] == ["["] and at >= 2 and (code[at - 2].kind in ("id", "str") or code[at - 2].text in (")", "]", "?")):
            if code[at - 2].text not in ("in", "return", "match", "if", "mut", "else", "break"):
                yield "index", content(token.text)
        elif after == ")" and before in ([".", "get", "("], [".", "pointer", "("]):
            yield before[1], content(token.text)


def names(source, word):
    """Tells a file that names an attribute, alone or as a part of an identifier, or in a string."""
    part = re.compile(rf"(?<![A-Za-z]){word}(?![A-Za-z])")
    return any(token.kind in ("id", "str") and part.search(token.text) for token in source.code)


def resolve(module, words, modules):
    """File of the innermost module that a path names, or None."""
    words = list(words)
    if words[0] in ("crate", "$crate"):
        base, words = (), words[1:]
    else:
        base = module
        while words and words[0] in ("self", "super"):
            if words[0] == "super":
                base = base[:-1]
            words = words[1:]
    for word in words:
        if base + (word,) not in modules:
            break
        base += (word,)
    return modules.get(base)


def components(graph):
    """Strongly connected components (Tarjan), without recursion."""
    nodes = set(graph) | {end for ends in graph.values() for end in ends}
    index, low, stack, on_stack, found, counter = {}, {}, [], set(), [], 0
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(sorted(graph.get(root, ()))))]
        index[root] = low[root] = counter
        counter += 1
        stack.append(root)
        on_stack.add(root)
        while work:
            node, ends = work[-1]
            for end in ends:
                if end not in index:
                    index[end] = low[end] = counter
                    counter += 1
                    stack.append(end)
                    on_stack.add(end)
                    work.append((end, iter(sorted(graph.get(end, ())))))
                    break
                if end in on_stack:
                    low[node] = min(low[node], index[end])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on_stack.discard(part[-1])
                    found.append(part)
    return found


def cuts(files, graph):
    """Imports inside a circle, each with the size of the largest circle without it, the best first."""
    files = set(files)
    inner = {start: graph[start] & files for start in files}
    results = []
    for start in sorted(files):
        for end in sorted(inner[start]):
            without = {node: ends - {end} if node == start else ends for node, ends in inner.items()}
            results.append((max(len(part) for part in components(without)), start, end))
    return sorted(results)


def doc_comments(source):
    """Documentation comments as texts: runs of lines of one kind without code between them."""
    run, last = [], None
    for token in source.tokens + [None]:
        kind = token.text[:3] if token is not None and token.kind == "doc" else None
        if run and (kind is None or kind != run[0][:3] or kind.startswith("/*") or token.line != last + 1):
            yield "\n".join(re.sub(r"^(///|//!|/\*\*|/\*!)|\*/$", "", line).strip() for line in run).strip()
            run = []
        if kind:
            run.append(token.text)
            last = token.last


def inner_comment_lines(source):
    """Lines of comments inside bodies; a comment behind code stands on a line that isn't one of its own."""
    taken = {line for token in source.code for line in (token.line, token.last)}
    spans = [(source.code[body].line, source.code[behind - 1].last) for _, _, body, behind in source.functions]
    lines = set()
    for token in source.tokens:
        if token.kind == "comment" and any(first < token.line and token.last < last for first, last in spans):
            lines.update(range(token.line, token.last + 1))
    return len(lines - taken)


def span_printers(source):
    """Functions that turn a span into text: (name, index)."""
    for name, at, body, _ in source.functions:
        header = [token.text for token in source.code[at:body]]
        if "->" not in header:
            continue
        arrow = len(header) - 1 - header[::-1].index("->")
        returns = header[arrow + 1 :]
        takes = header[:arrow]
        text = any(word in returns for word in ("String", "Display", "str", "Cow")) and not set(returns) & {"Option", "Result", "Vec"}
        if text and takes.count(":") in (1, 2) and "Duration" in takes and not set(takes) & {"self"}:
            yield name, at


def prose(source):
    """String literals of three words or more that people may read: (kind, text)."""
    code, stack, at = source.code, [], 0
    while at < len(code):
        end = attribute_end(code, at)
        if end > at:
            at = end
            continue
        token = code[at]
        if token.kind == "op" and token.text in OPEN:
            caller = code[at - 1].text if at else ""
            macro = caller == "!" and at > 1
            stack.append((code[at - 2].text if macro else caller, macro))
        elif token.kind == "op" and token.text in CLOSE and stack:
            stack.pop()
        elif token.kind == "str" and token.text[0] not in "bc":
            text = content(token.text)
            if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^}]*\}|\\.", " ", text))) >= 3 and " " in text:
                calls = {name for name, macro in stack if not macro}
                macros = {name for name, macro in stack if macro}
                if macros & LOG_MACROS:
                    yield "logs", text
                elif calls & QUIET_CALLS or macros & QUIET_MACROS:
                    yield "quiet", text
                elif re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|PRAGMA|BEGIN|SET|EXPLAIN|LOCK|local )\b|\s*--", text):
                    yield "sql", text
                else:
                    yield "prose", text
        at += 1


# ------------------------------------------------------------------------------------------------------------------ table

def measure(root):
    """All figures of a tree."""
    house = House(root)
    lines = house.lines()
    product = sum(count for crate, count in lines.items() if crate != "migration")
    return {
        "lines": {"product": product, "crates": dict(lines.most_common())},
        "methods": house.methods()[:5],
        "wire": house.wire(),
        "lookups": house.lookups(),
        "naming": {word: house.naming(word) for word in ATTRIBUTES},
        "circles": {crate: house.circles(crate)[0] for crate in sorted(house.crates)},
        "comments": house.comments(),
        "inner_comments": house.inner_comments(),
        "spans": house.spans(),
        "prose": house.prose(),
    }


def faults_of_words(root):
    """Comments and literals that break the rules of English, a line each; what only tests see is left out."""
    house = House(root)
    for path, source in house.sources.items():
        for text in doc_comments(source):
            words = text.split()
            if words and re.sub(r"\W+$", "", words[0]) in FOREIGN_STARTS:
                yield f"{path}: a comment begins with {words[0]}: {text.splitlines()[0][:80]}"
            if 0 < len(words) <= 3:
                yield f"{path}: a comment says no more than the name: {text.splitlines()[0]}"
        if house.crate(path) in WORDLESS_CRATES and not str(path).startswith(FOREIGN_WORDS):
            yield from (f"{path}: prose outside of src/words: {text.splitlines()[0][:80]}" for kind, text in prose(source) if kind == "prose")
    for place in house.spans():
        if not place.startswith(SPAN_PRINTERS):
            yield f"{place}: a span is printed by words::span, and a setting by settings::text"


def rows(figures):
    """Rows of the table: (name, goal, figure)."""
    number = lambda count: f"{count:,}"
    lines, lookups_, comments = figures["lines"], figures["lookups"], figures["comments"]
    yield "product lines (src)", "≤ 110,000", number(lines["product"])
    for crate in sorted(lines["crates"]):
        yield f"  {crate}", "", number(lines["crates"][crate])
    for place in range(5):
        owner = figures["methods"][place] if place < len(figures["methods"]) else None
        text = f"{owner['crate']}::{owner['type']} {owner['methods']}, {owner['files']} files, {owner['fields']} fields" if owner else ""
        yield "methods on one type" if place == 0 else "", "≤ 60" if place == 0 else "", text
    yield "wire types, both ways", "all", number(figures["wire"]["both"])
    yield "  only Serialize", "", number(figures["wire"]["serialize_only"])
    yield "  only Deserialize", "", number(figures["wire"]["deserialize_only"])
    yield "untyped look-ups", "< 30", f"{number(lookups_['all'])} of {lookups_['names']} names"
    for word in ATTRIBUTES:
        yield f"files that name {word}", "≤ 8" if word == "priority" else "", number(len(figures["naming"][word]))
    for crate, circle in figures["circles"].items():
        if circle["largest"]:
            yield f"largest circle of {crate}", "≤ 12", f"{circle['largest']} of {circle['of']} files"
    yield "documentation that begins with What, How, …", "≤ 3 %", share(comments["foreign_share"])
    yield "documentation of at most three words", "0", f"{number(comments['short'])} ({share(comments['short_share'])})"
    yield "comments inside functions", "where it surprises", f"{number(figures['inner_comments']['lines'])} ({share(figures['inner_comments']['share'])})"
    yield "functions that print spans", "1", number(len(figures["spans"]))
    for crate, counts in figures["prose"].items():
        goal = "logs only" if crate == "engine" else "0"
        yield f"prose literals in {crate}", goal, f"{counts['prose']} (logs {counts['logs']}, asserts {counts['quiet']})"


def share(part):
    return f"{100 * part:.1f} %"


def table(columns):
    """The figures of some trees as lines: (heading, figures)."""
    grid, order = {}, []
    for at, (_, figures) in enumerate(columns):
        seen = collections.Counter()
        for name, goal, figure in rows(figures):
            # Types of a rank have no name of their own.
            seen[name] += 1
            key = (name, seen[name])
            if key not in grid:
                # A circle that only a later tree has stands where the later tree has it.
                order.insert(order.index(last) + 1 if at else len(order), key)
                grid[key] = [goal] + [""] * len(columns)
            grid[key][at + 1], last = figure, key
    lines = [["", "goal"] + [heading for heading, _ in columns]] + [[key[0]] + grid[key] for key in order]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]


def show_circles(root):
    house = House(root)
    for crate in sorted(house.crates):
        circle, graph = house.circles(crate)
        if not circle["files"]:
            continue
        print(f"{crate}: {circle['largest']} of {circle['of']} files")
        for path in circle["files"]:
            print(f"    {path}")
        edges = house.edges(crate)
        for left, start, end in cuts(circle["files"], graph)[:12]:
            if left < circle["largest"]:
                lines = ", ".join(str(line) for line in sorted(set(edges[start, end])))
                print(f"    {left:4} without {start} → {end} (line {lines})")


def tree(commit, folder):
    """Root of a commit's product files, unpacked below a folder; of the work tree, as it stands."""
    if commit == ".":
        return ROOT
    target = os.path.join(folder, commit.replace("/", "_"))
    listed = subprocess.run(["git", "-C", ROOT, "ls-tree", "--name-only", commit], stdout=subprocess.PIPE, text=True)
    if listed.returncode != 0:
        sys.exit(2)
    wanted = [name for name in ("src", "migration", "Cargo.toml") if name in listed.stdout.split()]
    archive = subprocess.Popen(["git", "-C", ROOT, "archive", commit, *wanted], stdout=subprocess.PIPE)
    with tarfile.open(fileobj=archive.stdout, mode="r|") as packed:
        packed.extractall(target)
    if archive.wait() != 0:
        sys.exit(f"git archive {commit} failed")
    return target


# -------------------------------------------------------------------------------------------------------------- self-test

SAMPLE = {
    "src/lib.rs": """\
//! How a house is counted.

mod left;
mod right;
mod tests_of_time;

/// Where.
pub struct Quote<'a> {
    pub priority: &'a str,
    #[cfg(test)]
    only_in_tests: Vec<(u8, u8)>,
    letter: char, // canary
}

impl<'a> Quote<'a> {
    /* one /* inside */ another: fn none() {} */
    fn look(&self, value: &Value) -> bool {
        // The order matters.
        let raw = r#"a "quoted" text of { braces"#;
        let quote = '"';
        value["member"]["inner"] == raw && value.pointer("/other").is_some() && quote == '\\''
    }

    #[cfg(test)]
    fn helper(&self) -> [u8; 2] {
        [0, 1]
    }
}

impl Clone for Quote<'_> {
    fn clone(&self) -> Self {
        warn!("the copy is not free");
        self.expect("a copy that is there")
    }
}

fn span_text(span: Duration) -> String {
    format!("{span:?} and some more words")
}

#[cfg(test)]
mod inline {
    fn more() {}
}

#[cfg(test)]
mod tests;
""",
    "src/left.rs": "use crate::right::Right;\npub struct Left;\n",
    "src/right/mod.rs": "use super::{left::{self, Left}, Quote};\nmod deep;\npub struct Right;\n",
    "src/right/deep.rs": "#[derive(Debug, Clone)]\nenum Deep { One, Two(HashMap<u8, u8>) }\n",
    "src/tests_of_time.rs": "#![cfg(test)]\nfn none() {}\n",
    "src/tests.rs": "mod below;\nfn priority() {}\n",
    "src/tests/below.rs": "fn none() {}\n",
    "src/api/Cargo.toml": "[package]\n",
    "src/api/lib.rs": "#[derive(Serialize, Deserialize)]\npub struct Task { start_at: u64 }\n#[derive(Serialize)]\nenum Way { Out }\n",
    "src/core/Cargo.toml": "[package]\n",
    "src/core/lib.rs": "/// Nothing is foreign here, really.\nfn text() -> &'static str { \"three words here\" }\n",
}


def self_test():
    """Counts the sample; returns the figures that are wrong."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in SAMPLE.items():
            full = os.path.join(folder, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        house, figures = House(folder), measure(folder)
    source = house.sources["src/lib.rs"]
    expected = [
        ("files for tests", house.tests, {"src/tests.rs"}),
        ("lines", figures["lines"]["crates"], {"windrow": 42, "api": 4, "core": 2}),
        ("product", figures["lines"]["product"], 48),
        ("methods", figures["methods"], [{"type": "Quote", "crate": "windrow", "methods": 2, "files": 1, "fields": 2}]),
        ("wire", figures["wire"], {"serialize_only": 1, "deserialize_only": 0, "both": 1}),
        ("look-ups", sorted(lookups(source)), [("index", "inner"), ("index", "member"), ("pointer", "/other")]),
        ("priority", figures["naming"]["priority"], ["src/lib.rs"]),
        ("start_at", figures["naming"]["start_at"], ["src/api/lib.rs"]),
        ("canary", figures["naming"]["canary"], []),
        ("circle", figures["circles"]["windrow"]["files"], ["src/left.rs", "src/right/mod.rs"]),
        ("imports", dict(house.edges("windrow")), {
            ("src/left.rs", "src/right/mod.rs"): [1],
            ("src/right/mod.rs", "src/left.rs"): [1, 1],
            ("src/right/mod.rs", "src/lib.rs"): [1],
        }),
        ("documentation", [figures["comments"][name] for name in ("all", "foreign", "short")], [3, 2, 1]),
        ("comments", figures["inner_comments"]["lines"], 1),
        ("spans", figures["spans"], ["src/lib.rs:37 span_text"]),
        ("prose", sorted(prose(source)), [
            ("logs", "the copy is not free"),
            ("prose", "a \"quoted\" text of { braces"),
            ("prose", "{span:?} and some more words"),
            ("quiet", "a copy that is there"),
        ]),
        ("prose of a crate", dict(figures["prose"]["core"]), {"prose": 1, "logs": 0, "quiet": 0, "sql": 0}),
        ("table", table([("now", figures)])[1].split(), ["product", "lines", "(src)", "≤", "110,000", "48"]),
    ]
    return [f"{name}: {found}, but expected {wanted}" for name, found, wanted in expected if found != wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], add_help=True)
    parser.add_argument("commits", nargs="*", metavar="COMMIT")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--circles", action="store_true")
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    given = parser.parse_args()
    if given.self_test:
        faults = self_test()
        print("\n".join(faults) or "every counter counts")
        sys.exit(1 if faults else 0)
    with tempfile.TemporaryDirectory() as folder:
        commits = given.commits or ["."]
        roots = [tree(commit, folder) for commit in commits]
        if given.words:
            print("".join(f"{fault}\n" for fault in faults_of_words(roots[0])), end="")
            return
        if given.circles:
            show_circles(roots[0])
            return
        columns = [("work tree" if commit == "." else commit, measure(root)) for commit, root in zip(commits, roots)]
    if given.json:
        print(json.dumps(dict(columns) if len(columns) > 1 else columns[0][1], indent=2, ensure_ascii=False))
    else:
        print("\n".join(table(columns)))


if __name__ == "__main__":
    main()
