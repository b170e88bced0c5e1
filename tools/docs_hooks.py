"""Hooks of the documentation site, which generate parts of pages from the tree.

- A name with a star in the navigation of mkdocs.yml stands for the pages that match it and are not listed elsewhere.
- `<!-- estimators -->` on a page becomes the table of all estimators, from the registry, and `<!-- hooks -->` that of
  all hooks for plugins.
- The changelog and the guide for authors of plugins are pages of the site too, where they are. A link to any other file
  outside `docs` leads to a page that shows this file, so that the site is complete without a code host.
- The build fails if a page loads anything from another host.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Files outside `docs` that are pages of the site, by the names that they have there.
PAGES = {"project/changelog.md": ROOT / "CHANGELOG.md", "guide/plugin-authors.md": ROOT / "plugins" / "README.md"}
#: Highlighting by the ending of a file's name.
LANGUAGES = {".py": "python", ".pyi": "python", ".rs": "rust", ".toml": "toml", ".md": "markdown"}
LINK = re.compile(r"(?<!!)\[([^\]\n]*(?:\n[^\]\n]+)?)\]\(([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace names with a star in the navigation by the pages that match."""
    docs = Path(config.docs_dir)
    pages = sorted((path.relative_to(docs).as_posix() for path in docs.rglob("*.md")), key=posixpath.splitext)
    pages += [uri for uri, path in PAGES.items() if path.is_file()]
    listed = set(_names(config.nav))
    config.nav = _expanded(config.nav, pages, listed)
    return config


def _names(nav: Any) -> Iterator[str]:
    """Yield the file names in a navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from _names(value)
    else:
        for item in nav:
            yield from _names(item)


def _expanded(nav: list[Any], pages: list[str], listed: set[str]) -> list[Any]:
    """Return the navigation without stars; a page stays where it is listed, or goes where it matches first."""
    found: list[Any] = []
    for item in nav:
        if isinstance(item, str) and "*" in item:
            folder = posixpath.dirname(item)
            new = [
                page
                for page in pages
                if page not in listed and posixpath.dirname(page) == folder and fnmatch(page, item)
            ]
            listed.update(new)
            found += new
        elif isinstance(item, dict):
            parts = {
                key: _expanded(value, pages, listed) if isinstance(value, list) else value
                for key, value in item.items()
            }
            found += [{key: value} for key, value in parts.items() if value]
        else:
            found.append(item)
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside `docs` that a page links to."""
    for uri, path in PAGES.items():
        if path.is_file():
            files.append(File.generated(config, uri, content=path.read_text()))
    linked = {path for file in files.documentation_pages() for path in _outside(file.content_string, file.src_uri)}
    for path in sorted(linked):
        listing, hidden = _listing(path), InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, _source_uri(path), content=listing, inclusion=hidden))
    return files


def _outside(markdown: str, uri: str) -> Iterator[Path]:
    """Yield the files outside `docs` to which a page links."""
    for match in LINK.finditer(FENCE.sub("", markdown)):
        path = _target(match[2], uri)
        if path is not None and path.is_file() and not path.is_relative_to(DOCS) and path not in PAGES.values():
            yield path


def _target(link: str, uri: str) -> Path | None:
    """Return the file or folder to which a link of a page leads, or None if it is not in the repository."""
    if "://" in link or link.startswith(("/", "mailto:")):
        return None
    page = PAGES.get(uri, DOCS / uri)
    path = Path(os.path.normpath(page.parent / link))
    return path if path.is_relative_to(ROOT) else None


def _source_uri(path: Path) -> str:
    return f"source/{path.relative_to(ROOT).as_posix()}.md"


def _page_of(path: Path) -> str:
    """Return the name that a file of the repository has on the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return next((uri for uri, page in PAGES.items() if page == path), _source_uri(path))


def _listing(path: Path) -> str:
    """Return a page that shows a file and that the search leaves out."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text()
    fence = "`" * 5
    language = LANGUAGES.get(path.suffix, "text")
    return f"---\ntitle: {name}\nsearch:\n  exclude: true\n---\n\n# {name}\n\n{fence}{language}\n{text}\n{fence}\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the tables, and let links to files outside `docs` lead to the pages that show them."""
    uri = page.file.src_uri
    if uri.startswith("source/"):
        return markdown
    for mark, table in TABLES.items():
        if mark in markdown:
            markdown = markdown.replace(mark, table())

    def linked(match: re.Match[str]) -> str:
        text, link, anchor = match[1], match[2], match[3] or ""
        path = _target(link, uri)
        if path is None or not path.exists():
            return match[0]  # MkDocs warns of links that lead nowhere
        target = _page_of(path)
        if path.is_dir() or files.get_file_from_path(target) is None:
            return text
        return f"[{text}]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}{anchor})"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(linked, part) for part in parts)


def estimators() -> list[dict[str, Any]]:
    """Return the registry's entries of all estimators, in their order: id, needs, unbiased, weighted."""
    from offpolicy import _core

    return [
        {
            "id": about.id,
            "needs": about.needs,
            "unbiased": about.unbiased == "always",
            "weighted": about.weighted,
        }
        for about in _core.estimators()
    ]


def estimator_table() -> str:
    """Return the overview of all estimators; the equation and the summary are those of the estimator's own page."""
    rows = ["| id | what it is | needs | unbiased |", "|---|---|---|---|"]
    for each in estimators():
        page = DOCS / "estimators" / f"{each['id']}.md"
        if not page.is_file():
            raise PluginError(f"the estimator {each['id']!r} has no page {page.relative_to(ROOT)}")
        needs = ", ".join(f"`{need}`" for need in each["needs"]) or "rewards alone"
        rows.append(
            f"| [`{each['id']}`]({page.name}) | {summary(page)} | {needs} | {'yes' if each['unbiased'] else 'no'} |"
        )
    return "\n".join(rows)


def hook_table() -> str:
    """Return the hooks through which packages add to `offpolicy`, with the first lines of their docstrings."""
    from offpolicy import hookspecs

    hooks = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("offpolicy_")}
    rows = [f"| `{name}` | {hook.__doc__.splitlines()[0]} |" for name, hook in hooks.items()]
    return "\n".join(["| hook | brings |", "|---|---|", *rows])


#: The tables that are written in the place of a comment.
TABLES = {"<!-- estimators -->": estimator_table, "<!-- hooks -->": hook_table}


def summary(page: Path) -> str:
    """Return the first paragraph after a page's heading, on one line."""
    paragraph = page.read_text().split("\n\n")[1]
    return " ".join(paragraph.split())


class _Assets(HTMLParser):
    """Collects what a page loads from another host; links that a reader follows are no assets."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            loads = name in ("src", "srcset", "poster", "data") or (tag == "link" and name == "href")
            if loads and value and re.match(r"(https?:)?//", value):
                self.remote.append(f"<{tag} {name}={value}>")


def remote_assets(html: str) -> list[str]:
    """Return what a page would load from another host.

    >>> remote_assets('<script src="https://cdn.example/x.js"></script><a href="https://example.org">a link</a>')
    ['<script src=https://cdn.example/x.js>']
    """
    parser = _Assets()
    parser.feed(html)
    return parser.remote


def on_post_build(config: MkDocsConfig) -> None:
    """Fail if a page loads anything from another host."""
    site = Path(config.site_dir)
    found = [
        f"{path.relative_to(site)}: {asset}"
        for path in sorted(site.rglob("*.html"))
        for asset in remote_assets(path.read_text())
    ]
    found += [
        f"{path.relative_to(site)}: a style that loads from another host"
        for path in sorted(site.rglob("*.css"))
        if re.search(r"(@import|url\()\s*[\"']?(https?:)?//", path.read_text())
    ]
    if found:
        raise PluginError("pages load from other hosts:\n" + "\n".join(found))
