"""Measure what the extension costs JupyterLab, and how fast its views are, in Chromium.

    make bench-browser

Each comparison is of two pages of one browser, with the extension and with its files blocked, which
do the same in turn. The work of a key is the time for which the page's main thread was busy.
"""

import json
import statistics
import tempfile
from pathlib import Path

import playwright.sync_api

from tests.browser._lab import WAIT_MS, Notebook, Server, browser_path, load
from tests.browser._outputs import MIME_TYPE
from tests.browser.test_many_calls import MILLION

ROUNDS = 5
KEYS = "abcde fghi" * 5  # of each round
BADGES = 20  # and one of the callback
TRACES = 30
FRAMES = 180
LOAD = "%load_ext jupyter_jaxcb\nimport jax, jax.numpy as jnp"
REGISTER = "%%jax_callback pure --result x\ndef double(x):\n    return 2 * x"
LINES = "\n".join(["# typed: ", *[f"y{n} = double({n}.0)" for n in range(BADGES)]])
LOOP = "jax.jit(lambda x: jax.lax.fori_loop(0, 20_000, lambda i, y: double(y) / 2, x))(1.0);"
TRACE = "z = jax.jit(jax.vmap(double))(jnp.arange(4.0)) + double(1.0)"

# Opens the outputs that are on the screen, and returns how long each took until the next frame.
OPEN = """async () => {
  const { content } = window.jupyterapp.shell.currentWidget;
  const closed = '.jaxcb-disclosure[aria-expanded=false], details.jaxcb:not([open]) > summary';
  const took = [];
  for (const button of content.node.querySelectorAll(closed)) {
    const start = performance.now();
    button.click();
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    took.push(performance.now() - start);
  }
  return took;
}"""
# Scrolls a little in each frame; returns the number of frames in a second.
SCROLL = """async frames => {
  const { content } = window.jupyterapp.shell.currentWidget;
  const outer = content.node.querySelector('.jp-WindowedPanel-outer') ?? content.node;
  const step = (outer.scrollHeight - outer.clientHeight) / (frames / 2);
  const frame = () => new Promise(done => requestAnimationFrame(done));
  await frame();
  const start = performance.now();
  for (let count = 0; count < frames; count++) {
    outer.scrollTop += count < frames / 2 ? step : -step;
    await frame();
  }
  return 1000 * frames / (performance.now() - start);
}"""
# Measures the time from the request for the calls until they are drawn.
WATCH = """() => {
  window.drawn = new Promise(resolve => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    kernel.anyMessage.connect((_, { msg, direction }) => {
      const asks = direction === 'send' && msg.header.msg_type === 'comm_msg';
      if (asks && msg.content.data.type === 'recording') {
        const asked = performance.now();
        const look = () => {
          const words = document.querySelector('.jaxcb-timeline-canvas')?.ariaLabel ?? '';
          if (words.includes('of 1,000,000 calls')) {
            requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - asked)));
          } else {
            requestAnimationFrame(look);
          }
        };
        look();
      }
    });
  });
}"""
TASKS = """() => {
  window.tasks = [];
  window.observer = new PerformanceObserver(list =>
    window.tasks.push(...list.getEntries().map(entry => entry.duration)));
  window.observer.observe({ type: 'longtask' });
}"""
LONGEST = "() => Math.max(0, ...window.tasks)"
SORT = """async view => {
  const header = [...view.querySelectorAll('[role=columnheader]')]
    .find(each => each.textContent.includes('Duration'));
  const start = performance.now();
  header.querySelector('button').click();
  const done = () => header.ariaSort === 'ascending' &&
    view.querySelector('[aria-rowindex="2"] .jaxcb-table-duration')?.textContent === '500 ns';
  while (!done()) {
    await new Promise(next => requestAnimationFrame(next));
  }
  return performance.now() - start;
}"""


class Bench:
    """A server, a page with the extension, and one without it."""

    def __init__(self, browser, folder):
        self.server = Server(folder)
        self.pages = {name: self._page(browser, name) for name in ("on", "off")}

    def _page(self, browser, name):
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        if name == "off":
            page.route("**/labextensions/jupyter-jaxcb/**", lambda route: route.abort())
        load(page, f"{self.server.url}/lab/workspaces/{name}?reset")
        page.evaluate("async () => { await window.jupyterapp.restored; }")
        return page

    def opened(self, title, cells, name="on"):
        """Open a new notebook of `cells` in one of the pages, and run it."""
        page = self.pages[name]
        page.bring_to_front()
        book = Notebook(page, self.server, self.server.write(f"{title}-{name}.ipynb", cells), None)
        book.run_and_wait()
        return book

    def report(self, what, measured, unit, goal, *, at_least=False, detail=""):
        """Print one row, with whether it meets its goal."""
        met = measured >= goal if at_least else measured <= goal
        sign = ">=" if at_least else "<="
        numbers = f"{measured:8.2f} {unit:<3} {sign} {goal:<6g} {'' if met else 'MISSED'}"
        print(f"{what:<44} {numbers:<34} {detail}", flush=True)

    def compared(self, what, measure, goal, *, at_least=False):
        """Report the ratio of the medians of both pages, in turn; `measure(page)` is a function."""
        values = {"on": [], "off": []}
        measures = {name: measure(page) for name, page in self.pages.items()}
        for _ in range(ROUNDS):
            for name, page in self.pages.items():
                page.bring_to_front()
                values[name].append(measures[name]())
        on, off = map(statistics.median, values.values())
        self.report(what, on / off, "x", goal, at_least=at_least, detail=f"{on:.1f} / {off:.1f}")


def typing(page):
    """Return a function that types and returns the work of one key in ms."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def busy_ms():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    def type_keys():
        before = busy_ms()
        page.keyboard.type(KEYS, delay=30)
        return (busy_ms() - before) / len(KEYS)

    return type_keys


def scrolling(page):
    """Return a function that scrolls and returns the frame rate."""
    return lambda: page.evaluate(SCROLL, FRAMES)


def measure_typing(bench):
    for name in bench.pages:
        book = bench.opened("typing", [LOAD, REGISTER, LINES], name)
        if name == "on":
            book.page.locator(".jaxcb-badge-note").nth(BADGES).wait_for()
        book.cell(2).locator(".cm-line").first.click()
        book.page.keyboard.press("End")
        book.page.keyboard.type(KEYS)  # the first keys compile scripts
    bench.compared(f"typing with {BADGES + 1} badges, ms a key", typing, 1.3)


def measure_scrolling(bench):
    took = []
    for name, page in bench.pages.items():
        bench.opened("traces", [LOAD, REGISTER, *[TRACE] * TRACES], name)
        for place in range(2, TRACES + 2, 3):
            page.evaluate(
                "place => window.jupyterapp.shell.currentWidget.content.scrollToItem(place)", place
            )
            opened = page.evaluate(OPEN)
            took += opened if name == "on" else []
    detail = f"longest {max(took):.0f} of {len(took)}"
    bench.report("opening a trace", statistics.median(took), "ms", 100, detail=detail)
    bench.compared(
        f"scrolling {TRACES} open traces, frames a second", scrolling, 0.9, at_least=True
    )


def measure_million(bench):
    book = bench.opened("million", [MILLION, "recording"])
    view = book.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jaxcb-view")
    view.wait_for()
    book.page.evaluate(WATCH)
    book.page.evaluate(TASKS)
    view.evaluate(
        "view => { view.querySelector('.jaxcb-disclosure').click();"
        " view.querySelectorAll('[role=tab]')[1].click(); }"
    )
    draw_ms = book.page.evaluate("() => window.drawn")
    bench.report("1,000,000 calls: first draw", draw_ms, "ms", 1_000)
    bench.report("    its longest task", book.page.evaluate(LONGEST), "ms", 200)
    bench.report("1,000,000 calls: sort", view.evaluate(SORT), "ms", 500)


def measure_saved_size(bench):
    book = bench.opened("saved", [LOAD, REGISTER, LOOP])
    book.cell(2).locator(".jaxcb-view").wait_for()
    book.save()
    book.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    (output,) = bench.server.saved(book.name).cells[2].outputs
    saved = [output.data[MIME_TYPE], output.metadata[MIME_TYPE]]
    bench.report("saved size of 20,000 calls", len(json.dumps(saved)) / 1000, "kB", 15)


def main():
    """Print a row for each measurement: its result, its goal, and what was compared."""
    with (
        tempfile.TemporaryDirectory() as folder,
        playwright.sync_api.sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        bench = Bench(browser, Path(folder) / "server")
        try:
            for measure in (measure_typing, measure_scrolling, measure_million, measure_saved_size):
                measure(bench)
        finally:
            browser.close()
            bench.server.close()


if __name__ == "__main__":
    main()
