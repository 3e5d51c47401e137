"""The page in headless Chromium: it renders, its controls work, and hostile names stay text."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import image

from bowtienet._old import BowTieRegressor
from bowtienet._old.report import write_report
from tests._old.plotting.fits import quick
from tests._old.report.browser import ask, show
from tests._old.report.fits import IMAGE, SCRIPT, TARGET, fit_hostile, make_flats

WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def hostile(folder) -> Path:
    model, table = fit_hostile()
    path = folder / "hostile.html"
    write_report(model, table, TARGET, path, title=IMAGE, model_file=f"{SCRIPT}.btn")
    return path


@pytest.fixture(scope="module")
def two_model() -> tuple[BowTieRegressor, pd.DataFrame]:
    """Prices in hundred thousands, whose labels are long."""
    flats = make_flats()
    flats["price"] *= 1500.0
    return quick().fit(flats, ["price", "rent"]), flats


@pytest.fixture(scope="module")
def two(folder, two_model) -> Path:
    model, flats = two_model
    path = folder / "two.html"
    write_report(model, flats, ["price", "rent"], path)
    return path


@pytest.fixture(scope="module")
def wide(folder) -> Path:
    """So many columns that there is a field to find them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 20)), columns=[f"Column {i:02}" for i in range(20)])
    model = quick(n_estimators=1, tol=1.0).fit(table, table["Column 03"])
    path = folder / "wide.html"
    write_report(model, table, table["Column 03"].rename("y"), path, max_features=1)
    return path


def visible_bands(driver: Any, group: int = 0) -> list[int]:
    return ask(
        driver,
        f"[...document.querySelectorAll('[data-choice=feature-{group}]')]"
        ".map((f, i) => f.offsetHeight > 0 ? i : -1).filter(i => i >= 0)",
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["two", "hostile"])
def test_it_renders_without_errors_and_fits_the_screen(driver, request, name, width, tmp_path):
    show(driver, request.getfixturevalue(name), width)
    assert driver.get_log("browser") == []
    assert ask(driver, "document.documentElement.scrollWidth") <= width
    plots = ask(
        driver,
        "[...document.querySelectorAll('svg.plot')].filter(c => c.getClientRects().length)"
        ".map(c => [c.getBoundingClientRect().width, c.getBoundingClientRect().right])",
    )
    assert len(plots) >= 7
    assert all(size > 200 and right <= width for size, right in plots)
    boxes = "[...document.querySelectorAll('.scores')].map(t => t.parentElement)"
    cut = ask(driver, f"{boxes}.map(b => b.scrollWidth - b.clientWidth)")
    assert cut
    assert max(cut) <= 1  # scores are read without scrolling
    height = ask(driver, "document.documentElement.scrollHeight")
    whole = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    picture = tmp_path / "page.png"
    picture.write_bytes(base64.b64decode(whole["data"]))
    pixels = image.imread(picture)
    assert pixels.shape[0] == height
    assert width - 20 <= pixels.shape[1] <= width  # a scroll bar may take some of it
    # The page is drawn to its end: no screenful of it is blank.
    assert height > 5000
    for top in range(0, height - 900, 900):
        assert pixels[top : top + 900, :, :3].std() > 0.01, top


@pytest.mark.parametrize("width", WIDTHS)
def test_texts_of_plots_are_readable_and_inside(driver, two, width):
    show(driver, two, width)
    found = ask(
        driver,
        """[...document.querySelectorAll('svg.plot text')].filter(t => t.getClientRects().length)
        .map(t => { const a = t.getBoundingClientRect();
          const b = t.ownerSVGElement.getBoundingClientRect();
          const scale = b.width / t.ownerSVGElement.viewBox.baseVal.width;
          return [t.textContent, parseFloat(getComputedStyle(t).fontSize) * scale,
            a.left - b.left, b.right - a.right, a.top - b.top, b.bottom - a.bottom]; })""",
    )
    assert len(found) > 50
    for text, size, *room in found:
        assert size > 10.0, text
        assert min(room) > -1.5, (text, room)
    assert "800,000" in [text for text, *_ in found]


def test_choosing_a_feature_changes_the_plot(driver, two):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    show(driver, two)
    control = Select(driver.find_element(By.ID, "feature-0"))
    assert visible_bands(driver) == [0]
    others = visible_bands(driver, 1)
    for place in (2, 1):
        control.select_by_index(place)
        assert visible_bands(driver) == [place]
        caption = ask(
            driver,
            f"document.querySelectorAll('[data-choice=feature-0]')[{place}].innerText",
        )
        assert control.options[place].text in caption
    control.select_by_visible_text("all of them")
    assert visible_bands(driver) == list(range(len(control.options) - 1))
    assert visible_bands(driver, 1) == others


def test_every_target_is_on_the_panel(driver, two, two_model):
    """From the row with the highest price; what was moved stays when the target changes."""
    model, flats = two_model
    row = flats.loc[[flats["price"].idxmax()]].assign(city="Lima")
    mean, std = model.predict(row, return_std=True)
    show(driver, two)
    for script in (
        "s = document.getElementById('panel-row'); s.value = [...s.options].find("
        "o => o.text.includes('highest')).value; s.dispatchEvent(new Event('change'))",
        "s = [...document.querySelectorAll('.feature')].find(f => f.innerText.includes('city'))"
        ".querySelector('select'); s.value = 0;"
        "s.dispatchEvent(new Event('input', { bubbles: true }))",
    ):
        driver.execute_script(f"let {script}")
    for place in (0, 1, 0):
        driver.execute_script(
            f"const s = document.getElementById('panel-target'); s.value = {place};"
            "s.dispatchEvent(new Event('change'))"
        )
        shown = ask(driver, "({...document.getElementById('panel').dataset})")
        assert float(shown["mean"]) == pytest.approx(mean[0, place], rel=1e-6)
        assert float(shown["deviation"]) == pytest.approx(std[0, place], rel=1e-6)


def test_the_policy_refuses_other_styles_and_scripts(driver, hostile):
    show(driver, hostile)
    ran = ask(
        driver,
        """(() => { const s = document.createElement('script'); s.textContent = 'window.bad = 1';
        document.body.append(s); const p = document.querySelector('p');
        p.setAttribute('style', 'color: rgb(1, 2, 3)');
        return [window.bad || 0, getComputedStyle(p).color]; })()""",
    )
    assert ran[0] == 0
    assert ran[1] != "rgb(1, 2, 3)"
    assert len(
        [entry for entry in driver.get_log("browser") if "Content Security" in entry["message"]]
    )


def test_the_table_of_surprises_sorts(driver, two):
    show(driver, two)
    table = "document.querySelector('table.sortable')"
    read = f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[1].dataset.value))"
    before = ask(driver, read)
    button = f"{table}.tHead.rows[0].cells[1].querySelector('button')"
    driver.execute_script(f"{button}.click()")
    assert ask(driver, read) == sorted(before)
    assert ask(driver, f"{table}.tHead.rows[0].cells[1].ariaSort") == "ascending"
    driver.execute_script(f"{button}.click()")
    assert ask(driver, read) == sorted(before, reverse=True)


def test_columns_are_found_by_a_part_of_their_names(driver, two, wide):
    from selenium.webdriver import Keys
    from selenium.webdriver.common.by import By

    show(driver, two)
    assert not driver.find_elements(By.ID, "filter")
    show(driver, wide)
    shown = (
        "[...document.querySelectorAll('#columns tbody tr')].filter(r => r.offsetHeight)"
        ".map(r => r.cells[0].innerText.split('\\n')[0].trim())"
    )
    everything = ask(driver, shown)
    assert len(everything) == 21
    field = driver.find_element(By.ID, "filter")
    field.send_keys("column 1")
    assert ask(driver, shown) == [f"Column 1{i}" for i in range(10)]
    field.send_keys("7")
    assert ask(driver, shown) == ["Column 17"]
    field.send_keys("?")
    assert ask(driver, shown) == []
    field.send_keys(Keys.BACKSPACE * len("column 17?"))
    assert ask(driver, shown) == everything


def test_hostile_names_stay_text(driver, hostile):
    from selenium.common.exceptions import NoAlertPresentException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    show(driver, hostile)
    with pytest.raises(NoAlertPresentException):
        _ = driver.switch_to.alert
    assert ask(driver, "document.scripts.length") == 1
    assert ask(driver, "document.querySelectorAll('[onerror], b').length") == 0
    assert driver.find_element(By.TAG_NAME, "h1").text == IMAGE
    assert driver.title == IMAGE
    choices = Select(driver.find_element(By.ID, "feature-0"))
    assert SCRIPT in [option.text for option in choices.options]
    names = ask(driver, "[...document.querySelectorAll('#columns tbody th')].map(t => t.innerText)")
    assert any(name.startswith(SCRIPT) for name in names)
    assert driver.get_log("browser") == []


CONTRAST = """
(() => {
  const light = c => { const v = c.map(x => x / 255).map(
    x => x <= 0.03928 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4));
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const numbers = s => s.match(/[\\d.]+/g).map(Number);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; }
    return [255, 255, 255]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), low = [];
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.getClientRects().length) continue;
    // Plots are inverted as a whole.
    if (e.closest('.plot') && getComputedStyle(e.closest('.plot')).filter !== 'none') continue;
    const style = getComputedStyle(e);
    const ink = light(numbers(e.closest('svg') ? style.fill : style.color));
    const paper = light(behind(e));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) low.push([walker.currentNode.textContent.trim(), ratio]);
  }
  return low;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(driver, two, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        show(driver, two)
        paper = ask(driver, "getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        look = ask(driver, "getComputedStyle(document.querySelector('svg.plot')).filter")
        assert (look == "none") == (scheme == "light")
        assert ask(driver, CONTRAST.strip()) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_it_prints_with_all_features(driver, two):
    show(driver, two)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        count = ask(driver, "document.querySelectorAll('[data-choice=feature-0]').length")
        assert visible_bands(driver) == list(range(count))
        assert ask(driver, "document.querySelector('.control').offsetHeight") == 0
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000


def test_without_scripts_all_is_there(driver, two):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(driver, two)
        assert len(visible_bands(driver)) > 1
        assert ask(driver, "document.querySelector('.control').offsetHeight") == 0
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
