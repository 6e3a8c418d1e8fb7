"""The write-up as a PDF: ``python tools/writeup_pdf.py docs/_build/writeup.pdf``; needs Chromium and markdown-it-py."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

PAGE = Path(__file__).parents[1] / "docs" / "writeup.md"
STYLE = """
@page { size: A4; margin: 18mm 20mm; }
body { font: 9.5pt/1.35 "DejaVu Serif", Georgia, serif; }
h1 { font-size: 16pt; } h2 { font-size: 12pt; margin: 1em 0 0.3em; }
table { border-collapse: collapse; font-size: 7.5pt; margin: 0.6em 0; }
th, td { border-bottom: 0.4pt solid #999; padding: 1.5pt 5pt; text-align: left; }
code, pre { font-size: 8.5pt; } pre { background: #f4f4f4; padding: 4pt; }
"""


def html(text: str) -> str:
    """Return the page as HTML; links to other pages of the site become plain text."""
    text = re.sub(r"<!--.*?-->\n", "", text, flags=re.DOTALL)
    text = re.sub(r"\[([^\]]+)\]\([^)]*\.md\)", r"\1", text)
    body = MarkdownIt("commonmark").enable("table").render(text)
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>{body}'


def main() -> None:
    """Print the page to a PDF."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/writeup.pdf").resolve()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium was found: `apt-get install chromium`")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "writeup.html"
        source.write_text(html(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}/user",
        ]
        subprocess.run(
            [browser, *options, f"--print-to-pdf={target}", source.as_uri()], check=True, capture_output=True
        )
    n_pages = len(re.findall(rb"/Type /Page\b", target.read_bytes()))
    print(f"{target}: {n_pages} pages")


if __name__ == "__main__":
    main()
