"""The report in a real browser: no errors, no requests, working controls, readable on a phone and a desktop."""

import json
import shutil

import pytest
import xgboost
from sklearn.datasets import make_classification

import scboost

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: make test-browser")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait
Select = pytest.importorskip("selenium.webdriver.support.select").Select
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("Chromium and its driver are not installed: make test-browser", allow_module_level=True)

TABS = ["overview", "performance", "errors", "calibration", "features", "data", "fitting", "trees", "redundancy"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    X, y = make_classification(1200, 8, n_informative=5, flip_y=0.1, random_state=0)
    model = xgboost.XGBClassifier(n_estimators=60, n_jobs=1).fit(X[:600], y[:600])
    name = "<b onclick=alert(1)>XGB & co</b>"
    path = tmp_path_factory.mktemp("report") / "report.html"
    return scboost.report(model, X[600:], y[600:], name=name).save(path).as_uri()


@pytest.fixture(scope="module")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield started
    started.quit()


@pytest.fixture
def opened(driver, page):
    def open_at(width, **media):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": media.get("scheme", "light")}]
        setting = {"media": media.get("media", "screen"), "features": features}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", setting)
        driver.get_log("performance")
        driver.get(page)
        return driver

    return open_at


def by_id(driver, name):
    return driver.find_element("id", name)


def shown(driver):
    return [tab for tab in TABS if by_id(driver, f"part-{tab}").is_displayed()]


def test_the_page_loads_without_errors_and_requests(opened, page):
    driver = opened(1400)
    assert driver.title == "<b onclick=alert(1)>XGB & co</b> (XGBoost)"
    assert driver.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith("data:")} <= {page}


def test_tabs_select_their_section_by_click_and_arrow_key(opened):
    driver = opened(1400)
    assert shown(driver) == ["overview"]
    for tab in reversed(TABS):
        by_id(driver, f"tab-{tab}").click()
        assert shown(driver) == [tab]
    by_id(driver, "tab-overview").send_keys("\ue014")  # arrow to the right
    assert shown(driver) == ["performance"]
    assert driver.switch_to.active_element.get_attribute("id") == "tab-performance"
    by_id(driver, "tab-performance").send_keys("\ue012\ue012")  # and around, to the left
    assert driver.get_log("browser") == []


def test_the_slider_shows_the_number_of_trees_and_the_call(opened):
    driver = opened(1400)
    by_id(driver, "tab-trees").click()
    slider = by_id(driver, "trees-kept")
    slider.send_keys("\ue011")  # home
    assert by_id(driver, "trees-kept-call").text == "scboost.prune(model, X_val, y_val, max_trees=1).model"
    marks = [mark.get_attribute("x1") for mark in driver.find_elements("css selector", ".mark")]
    assert len(marks) == 2
    slider.send_keys("\ue010")  # end
    assert by_id(driver, "trees-kept-call").text.endswith("max_trees=60).model")
    assert by_id(driver, "trees-kept-words").text.startswith("60 of 60 trees.")
    moved = [mark.get_attribute("x1") for mark in driver.find_elements("css selector", ".mark")]
    assert all(float(new) > float(old) for old, new in zip(marks, moved, strict=True))


def test_the_threshold_slider_shows_counts_and_the_call(opened):
    driver = opened(1400)
    by_id(driver, "tab-performance").click()
    threshold = by_id(driver, "threshold")

    def counts():
        return [int(by_id(driver, f"threshold-{name}").text.replace(",", "")) for name in ("tp", "fp", "fn", "tn")]

    threshold.send_keys("\ue011")  # home: every sample is assigned to the class
    tp, fp, fn, tn = counts()
    assert (tp + fp, fn, tn) == (600, 0, 0)
    threshold.send_keys("\ue010")  # end
    assert by_id(driver, "threshold-call").text == "model.predict_proba(X)[:, 1] >= 1.00"
    assert sum(counts()) == 600
    Select(by_id(driver, "threshold-class")).select_by_index(0)
    assert by_id(driver, "threshold-call").text == "model.predict_proba(X)[:, 0] >= 1.00"
    assert driver.get_log("browser") == []


def test_the_heat_map_follows_the_color_scheme(opened):
    for scheme, expected in (("light", "none"), ("dark", "invert(1) hue-rotate(180deg)")):
        driver = opened(1400, scheme=scheme)
        by_id(driver, "tab-redundancy").click()
        image = driver.find_element("css selector", "#part-redundancy svg image")
        assert image.value_of_css_property("filter") == expected


def test_charts_show_the_values_under_the_pointer(opened):
    driver = opened(1400)
    readouts = []
    for tab in ("trees", "redundancy", "calibration"):
        by_id(driver, f"tab-{tab}").click()
        for figure in driver.find_elements("css selector", f"#part-{tab} figure[data-hover]"):
            svg = figure.find_element("css selector", "svg")
            webdriver.ActionChains(driver).move_to_element(svg).perform()
            readouts.append(figure.find_element("css selector", ".readout").text)
    assert len(readouts) == 7
    assert all(readouts), readouts
    assert sum("correlation" in text for text in readouts) == 1


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_screen_with_readable_text(opened, width, scheme):
    driver = opened(width, scheme=scheme)
    for tab in TABS:
        by_id(driver, f"tab-{tab}").click()
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        heights = driver.execute_script(
            "return [...document.querySelectorAll('section:not([hidden]) *')]"
            ".filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.getClientRects().length)"
            # Text in a picture is scaled with it.
            ".map(e => parseFloat(getComputedStyle(e).fontSize) * (e.ownerSVGElement && e.ownerSVGElement.viewBox"
            " ? e.ownerSVGElement.getBoundingClientRect().width / e.ownerSVGElement.viewBox.baseVal.width : 1))"
        )
        assert min(heights) >= 10.5
    ink, paper = driver.execute_script(
        "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        ".map(c => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0))"
    )
    assert abs(ink - paper) > 400
    assert (paper > ink) == (scheme == "light")


def test_print_shows_all_sections_and_no_controls(opened):
    driver = opened(1000, media="print", scheme="dark")
    assert shown(driver) == TABS
    assert not by_id(driver, "tab-overview").is_displayed()
    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_report_displays_itself_in_a_notebook(driver, tmp_path):
    X, y = make_classification(300, 5, random_state=0)
    model = xgboost.XGBClassifier(n_estimators=10, n_jobs=1).fit(X[:150], y[:150])
    cell = tmp_path / "cell.html"
    cell.write_text(f"<!doctype html><p>cell</p>{scboost.report(model, X[150:], y[150:])._repr_html_()}")
    driver.get_log("browser")
    driver.get(cell.as_uri())
    driver.switch_to.frame(0)
    by_id(driver, "tab-redundancy").click()
    assert shown(driver) == ["redundancy"]
    heights = {}
    for tab in ("redundancy", "fitting"):
        by_id(driver, f"tab-{tab}").click()
        content = driver.execute_script("return document.body.offsetHeight")
        driver.switch_to.default_content()
        frame = driver.find_element("css selector", "iframe")
        WebDriverWait(driver, 5).until(lambda _, frame=frame, content=content: frame.size["height"] == content + 8)
        heights[tab] = content
        driver.switch_to.frame(0)
    assert heights["fitting"] < heights["redundancy"]
    driver.switch_to.default_content()
    assert driver.get_log("browser") == []
