"""Links of the documents lead somewhere: to a file, to a heading in it, or to a well-formed address.

There is no network here: that other sites answer is checked by the hosted workflow, with ``make docs-links``.
"""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(page for page in ROOT.glob("docs/**/*.md") if "_build" not in page.parts)])
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|<(https?://[^>\s]+)>")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
BUILT = ("gallery/", "api/generated/")  # pages that exist once the site is made


def links(page):
    prose = CODE.sub("", page.read_text(encoding="utf-8"))
    return [first or second for first, second in LINK.findall(prose)]


def anchors(page):
    """Names of a page's headings, as GitHub and MyST make them."""
    without_blocks = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} (.+)$", without_blocks, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page, link):
    address = urlsplit(link)
    if address.scheme:
        return address.scheme == "mailto" or (address.scheme == "https" and "." in address.netloc)
    target = (page.parent / address.path).resolve() if address.path else page
    if not target.exists():
        return address.path.startswith(BUILT)
    return not address.fragment or target.suffix != ".md" or address.fragment in anchors(target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documentation_links_resolve(page):
    assert not [link for link in links(page) if not leads_somewhere(page, link)]


def test_broken_links_are_detected(tmp_path):
    assert sum(len(links(page)) for page in PAGES) > 50
    (tmp_path / "other.md").write_text("# A `code` heading, and more\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#a-code-heading-and-more) `[b](no.md)` <https://example.org> [c](mailto:a@b.c)\n")
    test_documentation_links_resolve(page)
    for wrong in ("no.md", "other.md#nothing", "http://example.org", "https://example", "#here"):
        page.write_text(f"[text]({wrong})\n")
        with pytest.raises(AssertionError):
            test_documentation_links_resolve(page)
