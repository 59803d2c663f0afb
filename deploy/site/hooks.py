"""Hooks of mkdocs: pages from outside of docs/, links to files of the repository, navigation, version.

The repository's pages link to files by path. Here such a link leads to a page of the site, and one to a file that is
no page becomes that file's path. No page is written for the site alone.
"""
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
# Files outside of docs/ that are pages of the site, by their place in it.
PAGES = {
    "index.md": "README.md",
    "index.zh-CN.md": "README.zh-CN.md",
    "examples.md": "examples/README.md",
    "changelog.md": "CHANGELOG.md",
}
# Blocks of code have lines of 120 characters.
STYLE = ".md-grid{max-width:80rem}"
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<to>[^)\s]+)\)|(?P<attribute>src|srcset)=\"(?P<image>[^\"]+)\"")


def on_config(config):
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    config.site_name += " " + version[1]
    return config


def on_files(files, config):
    """Adds the pages from outside, and completes the navigation by the pages that it doesn't name."""
    for place, source in PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "site.css", content=STYLE))
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = list(filter(None, (existing(entry, pages) for entry in config.nav)))
    rest = sorted(set(pages) - set(named(config.nav)))
    chinese = [page for page in rest if page.endswith(".zh-CN.md")]
    decisions = [page for page in rest if page.startswith("decisions/")]
    more = [page for page in rest if page not in {*chinese, *decisions}]
    sections = {"More": more, "中文": chinese, "Decisions": decisions}
    config.nav += [{title: inner} for title, inner in sections.items() if inner]
    return files


def existing(entry, pages):
    """Leaves out pages that this version doesn't have."""
    if isinstance(entry, str):
        return entry if entry in pages else None
    ((title, inner),) = entry.items()
    inner = [page for page in inner if page in pages]
    return {title: inner} if inner else None


def named(nav):
    for entry in nav:
        yield from [entry] if isinstance(entry, str) else next(iter(entry.values()))


def on_page_markdown(markdown, page, config, files):
    """Turns links by path into links of the site, outside of blocks of code; decisions are found after other pages."""
    place = page.file.src_uri
    if place.startswith("decisions/"):
        page.meta["search"] = {"boost": 0.1}
    source = PurePosixPath(PAGES.get(place, "docs/" + place)).parent
    here = str(PurePosixPath(place).parent)
    sites = {"docs/" + file.src_uri: file.src_uri for file in files} | {own: at for at, own in PAGES.items()}

    def moved(link):
        """A link as the site has it, or None for a file that is no page."""
        path, mark, anchor = link.partition("#")
        if "://" in path or not path:
            return link
        path = normpath(str(source / path))
        if path in sites:
            return relpath(sites[path], here) + mark + anchor
        return None if (ROOT / path).exists() else link     # mkdocs reports one that leads nowhere

    def replace(found):
        if found["attribute"]:
            return f'{found["attribute"]}="{moved(found["image"])}"'
        text, to = found["text"], moved(found["to"])
        if to:
            return f"[{text}]({to})"
        path = normpath(str(source / found["to"]))
        return f"`{path}`" if path.endswith(text.strip("`")) else f"{text} (`{path}`)"

    parts, end = [], 0
    for block in FENCE.finditer(markdown):
        parts += [LINK.sub(replace, markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(replace, markdown[end:])])
