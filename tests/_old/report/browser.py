"""Headless Chromium for tests of pages.

Where there is no browser such tests are skipped, but on CI they fail: `.ci/run` installs one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NEEDED = bool(os.environ.get("CI") or os.environ.get("BOWTIENET_NEED_BROWSER"))
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
)


def missing() -> str | None:
    """What is lacking to open a page; None if all is there."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium (pip install selenium)"
    if not any(map(shutil.which, BROWSERS)):
        return "chromium (apt-get install chromium)"
    return (
        None if shutil.which("chromedriver") else "chromedriver (apt-get install chromium-driver)"
    )


def open_browser(profile: Path) -> Iterator[Any]:
    """A driver, until it is not needed any more."""
    lacking = missing()
    if lacking is not None:
        words = f"NO BROWSER, THE REPORT WAS NOT OPENED: there is no {lacking}"
        if NEEDED:
            pytest.fail(words)
        pytest.skip(words)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, BROWSERS)))
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    found = webdriver.Chrome(options=options, service=service)
    yield found
    found.quit()


def show(driver: Any, path: Path, width: int = 1280) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(path.as_uri())


def ask(driver: Any, script: str) -> Any:
    return driver.execute_script(f"return {script}")
