"""A hook of MkDocs: pages of the site that lie elsewhere in the repository, and pages as Markdown.

Links between them and the pages of docs/ lead to pages; what a link to any other file says stays
as text. Beside each page lies its Markdown, and llms.txt (llmstxt.org) lists them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "configuration.md": "config/README.md",
    "nextflow.md": "nextflow/README.md",
    "reproduction-configs.md": "config/reproduce/README.md",
    "changes.md": "CHANGELOG.md",
}
"""Names on the site, and the files."""

LINK = re.compile(r"\[([^\]\[]+)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def as_page(source: str, text: str | None = None) -> str:
    """The text of a file as a page of the site.

    Args:
        source: the file's path in the repository.
        text: what it holds, if that is known.
    """
    pages = {file: page for page, file in PAGES.items()}
    if text is None:
        text = (ROOT / source).read_text()

    def link(found: re.Match[str]) -> str:
        target = os.path.normpath(Path(source).parent / found[2])
        page = pages.get(target) or target.removeprefix("docs/")
        if page == target:
            return found[1]
        return f"[{found[1]}]({page}{found[3] or ''})"

    return LINK.sub(link, text)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages; called by MkDocs."""
    from mkdocs.structure.files import File

    for page, source in PAGES.items():
        files.append(File.generated(config, page, content=as_page(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mend the links of a page of docs/ that lead out of that folder; called by MkDocs."""
    if page.file.src_uri in PAGES:
        return markdown
    return as_page(f"docs/{page.file.src_uri}", markdown)


def on_post_build(config: Any) -> None:
    """Write the pages as Markdown, and the list of them; called by MkDocs."""
    site, docs = Path(config["site_dir"]), Path(config["docs_dir"])
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", ""]
    for group in config["nav"]:
        ((title, pages),) = group.items()
        own = [{title: pages}] if isinstance(pages, str) else pages
        lines += [f"## {title}", ""]
        for page in own:
            ((name, file),) = page.items()
            text = as_page(PAGES[file]) if file in PAGES else (docs / file).read_text()
            (site / file).write_text(text)
            lines.append(f"- [{name}]({file})")
        lines.append("")
    (site / "llms.txt").write_text("\n".join(lines))
