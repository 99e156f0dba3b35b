"""Take the screenshots and the films of docs/pictures, light and dark: `make pictures`."""

import sys
import tempfile
from pathlib import Path

import playwright.sync_api

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.browser._lab import REPOSITORY, Notebook, Server, browser_path
from tests.browser.film import CELLS, take_film

OUT = REPOSITORY / "docs" / "pictures"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}

PROFILED = [
    """%load_ext jupyter_jaxcb
import time, jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb

@jaxcb.pure(result="x")
def simulate(x):
    time.sleep(0.001)
    return 0.99 * x

@jaxcb.debug
def log(day, mean):
    time.sleep(0.03)

@jax.jit
def step(day, field):
    edge = jax.vmap(simulate)(field[0, :60])
    log(day, edge.mean())
    return jnp.tanh(field @ field + edge.sum())

field = jnp.ones((1200, 1200))
step(0, field).block_until_ready();""",
    """%%jax_profile
for day in range(3):
    field = step(day, field)
    time.sleep(0.05)  # read the next day
jax.block_until_ready(field);""",
]


def picture(notebook, name, theme):
    notebook.page.wait_for_timeout(700)  # until animations have ended
    notebook.page.screenshot(path=OUT / f"{name}-{theme}.png")


def take(browser, server, theme):
    """Take all pictures in one theme."""
    page = browser.new_page(viewport={"width": 1180, "height": 760})
    notebook = Notebook(page, server, server.write(f"airy-{theme}.ipynb", CELLS))
    notebook.set_theme(THEMES[theme])
    notebook.command("application:toggle-left-area")
    notebook.run_and_wait(0, 1)
    notebook.command("jupyter-jaxcb:open-panel")
    notebook.cell(1).locator(".jaxcb-disclosure").click()
    notebook.cell(1).get_by_role("button", name="details of jv").last.click()
    notebook.cell(0).scroll_into_view_if_needed()
    picture(notebook, "sites", theme)
    notebook.run_and_wait(2)
    notebook.run(3)
    live = notebook.cell(3).locator(".jaxcb-live")
    live.get_by_text("timeline", exact=True).click()
    live.scroll_into_view_if_needed()
    picture(notebook, "live", theme)
    notebook.wait(3)  # the host trace opens at the calls, as the live view was left
    table = notebook.cell(3).locator(".jaxcb-table-body [role=row]")
    table.nth(4).click()
    notebook.cell(3).evaluate("node => node.scrollIntoView({ block: 'start' })")
    picture(notebook, "calls", theme)
    page.close()


def take_profile(browser, server, theme):
    """Take the picture of the tab Time in one theme."""
    page = browser.new_page(viewport={"width": 1180, "height": 1140})
    notebook = Notebook(page, server, server.write(f"profile-{theme}.ipynb", PROFILED))
    notebook.set_theme(THEMES[theme])
    notebook.command("application:toggle-left-area")
    notebook.run_and_wait(0, 1)
    notebook.cell(1).get_by_role("button", name="Show threads").click()
    notebook.cell(1).evaluate("node => node.scrollIntoView({ block: 'start' })")
    page.mouse.move(0, 0)
    picture(notebook, "time", theme)
    page.close()


def main():
    """Start a server and a browser, and take all pictures."""
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, playwright.sync_api.sync_playwright() as driver:
        server = Server(Path(folder) / "server")
        try:
            browser = driver.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
            for theme in THEMES:
                take(browser, server, theme)
                take_profile(browser, server, theme)
                take_film(browser, server, THEMES[theme], OUT / f"session-{theme}.webp")
            browser.close()
        finally:
            server.close()


if __name__ == "__main__":
    main()
