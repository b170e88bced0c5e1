"""The crates that are built are those that were reviewed: `tools/crates > rust/crates.txt` writes the list anew."""

import re
import tomllib

from places import ROOT

ALLOWED = {
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}
LOCKED = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
REVIEWED = [line.split(maxsplit=3) for line in (ROOT / "rust/crates.txt").read_text().splitlines()]


def allowed(licence):
    """Tell whether each part joined by AND offers one licence that is allowed."""
    parts = [part.strip(" ()") for part in licence.split(" AND ")]
    return all(any(choice.strip() in ALLOWED for choice in re.split(r" OR |/", part)) for part in parts)


def test_every_locked_crate_was_reviewed_and_no_other():
    locked = [[crate["name"], crate["version"], crate["checksum"]] for crate in LOCKED if "source" in crate]
    assert [line[:3] for line in REVIEWED] == locked


def test_every_crate_comes_from_the_registry_or_the_workspace():
    sources = {crate["name"]: crate.get("source") for crate in LOCKED}
    outside = {source for source in sources.values() if source}
    assert outside == {"registry+https://github.com/rust-lang/crates.io-index"}
    assert {name for name, source in sources.items() if not source} == {"offpolicy-core", "offpolicy-python"}


def test_every_licence_is_allowed():
    assert [(name, licence) for name, _, _, licence in REVIEWED if not allowed(licence)] == []


def test_a_licence_that_is_not_allowed_is_seen():
    assert allowed("MIT OR GPL-3.0-only")
    assert not allowed("MIT AND GPL-3.0-only")
    assert not allowed("unknown")
