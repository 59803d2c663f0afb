#!/usr/bin/env python3
"""Writes the parts list of the program: `sbom.cdx.json` (CycloneDX 1.5) and `THIRD-PARTY.txt` with all licence texts.

    scripts/notices.py VERSION FOLDER

The parts are the crates that the program is linked from, as `cargo tree` resolves them, with checksums from Cargo.lock,
and the dashboard's vendored scripts. A part without a licence fails the script.
"""
import json
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

TARGET = "x86_64-unknown-linux-gnu"
# Names of files with licence texts, at any depth: C sources lie in folders of their own.
TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?$", re.IGNORECASE)
CODE = {".rs", ".c", ".h", ".py", ".json", ".toml"}


def cargo(*words: str) -> str:
    return subprocess.run(["cargo", *words], check=True, capture_output=True, text=True).stdout


def linked() -> list[dict]:
    """Returns the packages of other authors that end up in the program, from `cargo metadata`."""
    tree = cargo("tree", "--locked", "-p", "windrow", "-e", "normal,no-proc-macro", "--target", TARGET,
                 "--prefix", "none", "-f", "{p}")
    named = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    packages = json.loads(cargo("metadata", "--locked", "--format-version", "1"))["packages"]
    found = [one for one in packages if one["source"] and (one["name"], "v" + one["version"]) in named]
    return sorted(found, key=lambda one: (one["name"], one["version"]))


def checksums() -> dict[tuple[str, str], str]:
    lock = tomllib.loads(Path("Cargo.lock").read_text())
    return {(one["name"], one["version"]): one.get("checksum", "") for one in lock["package"]}


def texts(package: dict) -> dict[str, str]:
    """Returns the licence texts in a package, by path."""
    folder = Path(package["manifest_path"]).parent
    files = [one for one in sorted(folder.rglob("*")) if TEXTS.match(one.name) and one.suffix not in CODE]
    return {str(one.relative_to(folder)): one.read_text(errors="replace").strip() for one in files if one.is_file()}


def licence(package: dict) -> str:
    """Returns the SPDX expression; older packages write a slash for `OR`."""
    expression = (package["license"] or "").replace("/", " OR ")
    if not expression:
        sys.exit(f"{package['name']} {package['version']} names no licence")
    return re.sub(r"\s+", " ", expression)


def component(package: dict, sha256: str) -> dict:
    name, version = package["name"], package["version"]
    purl = f"pkg:cargo/{name}@{version.replace('+', '%2B')}"
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        "licenses": [{"expression": licence(package)}],
        "hashes": [{"alg": "SHA-256", "content": sha256}],
    }


def vendored() -> tuple[list[dict], str]:
    """Returns the scripts that the dashboard contains, and the text that states their licences."""
    page = Path("ui/vendor/VENDOR.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| `preact-htm.js`"))
    components = []
    for name, version in re.findall(r"([@\w/-]+) (\d+\.\d+\.\d+)", row):
        purl = f"pkg:npm/{name.replace('@', '%40')}@{version}"
        spdx = "Apache-2.0" if name == "htm" else "MIT"
        components.append({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
                           "licenses": [{"expression": spdx}]})
    return components, page.split("## Licences\n", 1)[1].strip()


def main(version: str, folder: Path) -> None:
    packages, sums = linked(), checksums()
    scripts, scripts_text = vendored()
    parts = [component(one, sums[one["name"], one["version"]]) for one in packages] + scripts
    body = json.dumps(parts, sort_keys=True)
    sbom = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        # From the content, so that two builds of one commit have the same document.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, body)}",
        "metadata": {"component": {
            "type": "application", "bom-ref": "windrow", "name": "windrow", "version": version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }},
        "components": parts,
        "dependencies": [{"ref": "windrow", "dependsOn": [one["bom-ref"] for one in parts]}],
    }
    (folder / "sbom.cdx.json").write_text(json.dumps(sbom, indent=1) + "\n")
    # Most texts are one of a few: each is printed once, below all parts that it is for.
    owners: dict[str, list[str]] = {}
    for one in packages:
        found = texts(one) or {"": f"The package contains no text of its licence, {licence(one)}."}
        for path, text in found.items():
            owners.setdefault(text, []).append(f"{one['name']} {one['version']} ({licence(one)}) {path}".rstrip())
    names = "\n".join(f"{one['name']} {one['version']} ({one['licenses'][0]['expression']})" for one in scripts)
    owners[scripts_text] = [names]
    rule = "\n\n" + "=" * 100 + "\n"
    sections = ["\n".join(parts) + "\n\n" + text for text, parts in owners.items()]
    head = f"Windrow {version} contains software of others. Each text below is for the packages named above it."
    (folder / "THIRD-PARTY.txt").write_text(head + rule + rule.join(sections) + "\n")
    print(f"{len(parts)} parts, {len(owners)} licence texts")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
