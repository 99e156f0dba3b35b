"""Take the screenshots of docs/pictures, light and dark: `make pictures`."""

import sys
import tempfile
from pathlib import Path

import playwright.sync_api

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.browser._lab import REPOSITORY, Notebook, Server, browser_path

OUT = REPOSITORY / "docs" / "pictures"
CELLS = [
    "%load_ext jupyter_jaxcb\nimport jax, jax.numpy as jnp, scipy.special, time",
    "%%jax_callback pure --result z --vmap-method expand_dims\n"
    "def bessel(v, z):\n    return scipy.special.jv(v, z)",
    "@jax.jit\ndef airy(x):\n    center = bessel(0, x)\n"
    "    return (2 * bessel(1, x) / x) ** 2\nairy(jnp.arange(1.0, 7.0));",
    "jax.vmap(jax.vmap(bessel, (None, 0)), (0, None))(jnp.arange(3), jnp.arange(1.0, 5.0));",
    "%%jax_callback io --result x\ndef simulate(x):\n"
    "    time.sleep(0.001 + 0.004 * (int(x) % 7 == 0))\n    return x + 1",
    "jax.jit(lambda x: jax.lax.fori_loop(0, 1200, lambda i, y: simulate(y), x))(0.0);",
]
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


def picture(notebook, name, theme):
    notebook.page.wait_for_timeout(700)  # until animations have ended
    notebook.page.screenshot(path=OUT / f"{name}-{theme}.png")


def take(browser, server, theme):
    """Take all pictures in one theme."""
    page = browser.new_page(viewport={"width": 1180, "height": 1020})  # the vmap diagram is visible
    notebook = Notebook(page, server, server.write(f"airy-{theme}.ipynb", CELLS))
    notebook.set_theme(THEMES[theme])
    notebook.command("application:toggle-left-area")
    notebook.run_and_wait(0, 1, 2, 3, 4)
    notebook.command("jupyter-jaxcb:open-panel")
    for number in (2, 3):
        notebook.cell(number).locator(".jaxcb-disclosure").click()
    notebook.cell(1).scroll_into_view_if_needed()
    picture(notebook, "sites", theme)
    page.set_viewport_size({"width": 1180, "height": 760})
    notebook.run(5)
    notebook.cell(5).locator(".jaxcb-live").locator("summary").click()
    notebook.cell(5).locator(".jaxcb-live").scroll_into_view_if_needed()
    picture(notebook, "live", theme)
    notebook.wait(5)
    notebook.cell(5).locator(".jaxcb-disclosure").click()
    notebook.cell(5).get_by_role("tab", name="Calls").click()
    table = notebook.cell(5).locator(".jaxcb-table-body [role=row]")
    table.nth(4).click()
    notebook.cell(5).evaluate("node => node.scrollIntoView({ block: 'start' })")
    picture(notebook, "calls", theme)
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
            browser.close()
        finally:
            server.close()


if __name__ == "__main__":
    main()
