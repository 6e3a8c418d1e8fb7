"""Check the built site and a report in Chromium: no serious findings of axe-core, nothing too wide for a telephone.

`make accessibility`. Serious includes critical; what is wider than a screen of 400 px must scroll by itself.

Needs Chromium with its driver, selenium and axe-core (``npm install --prefix build/axe axe-core``).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build" / "html"
PAGES = (
    "index",
    "install",
    "tutorial",
    "guide/index",
    "guide/report",
    "guide/compress",
    "parameters",
    "faq",
    "benchmarks",
    "command_line",
    "api/generated/scboost.SCBoostClassifier",
)
WIDTHS, SCHEMES = (400, 1400), ("light", "dark")
IMPACTS = {"serious", "critical"}
_SETTLED = "document.head.insertAdjacentHTML('beforeend', '<style>* { transition: none !important }</style>')"
# Elements that reach beyond the screen and do not lie in one that scrolls.
_TOO_WIDE = """
const scrolls = e =>
  !e.matches("main, article") && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
return [...document.querySelectorAll("main *")]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement))
  .map(e => e.outerHTML.slice(0, 100));
"""


def write_report(folder: Path) -> Path:
    """Write a report with all its tabs."""
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier

    import scboost

    X, y = make_classification(600, 6, n_informative=4, random_state=0)
    models = [RandomForestClassifier(n, random_state=0).fit(X[:300], y[:300]) for n in (20, 5)]
    report = scboost.report(
        models[0], X[300:], y[300:], X_train=X[:300], y_train=y[:300], compare=models[1], measure_speed=False
    )
    return report.save(folder / "report.html")


def start_browser() -> Any:
    """Start Chromium without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or ""
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def findings(browser: Any, axe: str, url: str, width: int, scheme: str) -> Iterator[str]:
    """Yield the serious findings on a page, those of all tabs of a report."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(url)
    browser.execute_script(_SETTLED)  # a color that is still changing has a contrast of its own
    browser.execute_script(axe)
    for tab in browser.find_elements("css selector", "main [role=tab]") or [None]:
        if tab is not None and not tab.find_elements("xpath", "ancestor::*[contains(@class, 'sd-tab-set')]"):
            tab.click()
        found = browser.execute_async_script(
            "const done = arguments[0]; axe.run(document).then(r => done(r.violations))"
        )
        for violation in found:
            if violation["impact"] in IMPACTS:
                nodes = "; ".join(node["html"][:100] for node in violation["nodes"][:3])
                yield f"{violation['impact']}: {violation['id']} ({len(violation['nodes'])}): {nodes}"
        wide = browser.execute_script(_TOO_WIDE) if width < 600 else []
        if wide:
            yield f"wider than the screen ({len(wide)}): {wide[-1]}"


def main() -> int:
    """Check all pages; return 1 if anything serious was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axe", type=Path, default=ROOT / "build/axe/node_modules/axe-core/axe.min.js")
    parser.add_argument("--all", action="store_true", help="all pages of the site, not only the main ones")
    arguments = parser.parse_args()
    axe = arguments.axe.read_text(encoding="utf-8")
    pages = [SITE / f"{page}.html" for page in PAGES]
    if arguments.all:
        pages = [page for page in sorted(SITE.rglob("*.html")) if "_static" not in page.parts]
    failed = 0
    browser = start_browser()
    with tempfile.TemporaryDirectory() as folder:
        urls = [write_report(Path(folder)).as_uri(), *(page.as_uri() for page in pages)]
        for url in urls:
            for width in WIDTHS:
                for scheme in SCHEMES:
                    for text in dict.fromkeys(findings(browser, axe, url, width, scheme)):
                        failed += 1
                        print(f"{url.rpartition('/html/')[2]}, {width} px, {scheme}: {text}")
    browser.quit()
    print(f"{len(urls)} pages, {failed} serious findings")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
