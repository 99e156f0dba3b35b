"""Measure what the extension costs JupyterLab in Chromium, with and without it in turn.

    make bench-browser
"""

import statistics
import sys
import tempfile
from pathlib import Path

import playwright.sync_api

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.browser._lab import WAIT_MS, Notebook, Server, browser_path, load

KEYS = 50
ROUNDS = 5
LINES = 20
LOAD = """%load_ext jupyter_jaxcb
import jax, jax.numpy as jnp"""
REGISTER = """%%jax_callback pure --result x
def double(x):
    return 2 * x"""
CALLS = "\n".join(["# typed: ", *[f"y{n} = double({n}.0)" for n in range(LINES)]])


class Bench:
    """A server, and a page with the extension and one without it."""

    def __init__(self, browser, folder):
        self.server = Server(folder)
        self.pages = {}
        for name in ("on", "off"):
            context = browser.new_context(viewport={"width": 1400, "height": 1000})
            context.set_default_timeout(WAIT_MS)
            page = context.new_page()
            if name == "off":
                page.route("**/jupyter-jaxcb/**", lambda route: route.abort())
            load(page, f"{self.server.url}/lab/workspaces/{name}?reset")
            page.evaluate("async () => { await window.jupyterapp.restored; }")
            self.pages[name] = page

    def opened(self, title, cells, run=True):
        books = {}
        for name, page in self.pages.items():
            books[name] = Notebook(page, self.server, self.server.write(f"{title}-{name}.ipynb", cells), None)
            if run:
                books[name].run_and_wait()
        return books


def main_thread_ms(page, act):
    """Return how long the main thread worked during `act`, in ms by kind of work."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def read():
        values = session.send("Performance.getMetrics")["metrics"]
        return {one["name"]: one["value"] for one in values}

    before = read()
    act()
    after = read()
    session.detach()
    kinds = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
    return {kind: 1000 * (after[kind] - before[kind]) for kind in kinds}


def type_keys(page):
    page.keyboard.type("abcde fghi" * (KEYS // 10), delay=30)


def typing(bench):
    books = bench.opened("typing", [LOAD, REGISTER, CALLS])
    took = {"on": [], "off": []}
    for name, book in books.items():
        print(name, "badges:", book.page.locator(".jaxcb-badge").count())
        book.cell(2).locator(".cm-line").first.click()
        book.page.keyboard.press("End")
        type_keys(book.page)
    for _ in range(ROUNDS):
        for name, book in books.items():
            book.page.bring_to_front()
            took[name].append(main_thread_ms(book.page, lambda: type_keys(book.page)))
    for name, rounds in took.items():
        print(name, {k: round(statistics.median(r[k] for r in rounds) / KEYS, 2) for k in rounds[0]},
              [round(r["TaskDuration"] / KEYS, 2) for r in rounds])
    return books


def main():
    with (
        tempfile.TemporaryDirectory() as folder,
        playwright.sync_api.sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        bench = Bench(browser, Path(folder) / "server")
        try:
            typing(bench)
        finally:
            browser.close()
            bench.server.close()


if __name__ == "__main__":
    main()
