"""Record a session in JupyterLab as a moving picture: part of `make pictures`."""

import io
import re

from PIL import Image

from tests.browser._lab import REPOSITORY, Notebook

CELL = re.search(r"```python\n(.*?)\n```", (REPOSITORY / "README.md").read_text(), re.DOTALL)[1]
CELLS = [
    "%load_ext jupyter_jaxcb",
    f"{CELL};",  # without the array that it returns
    'import time\n\n@jaxcb.io(result="x")\ndef simulate(x):\n'
    "    time.sleep(0.001 + 0.004 * (int(x) % 7 == 0))\n    return x + 1",
    "@jax.jit\ndef loop(x):\n"
    "    step = lambda i, y: jax.vmap(simulate)(y)\n"
    "    return jax.lax.fori_loop(0, 40, step, x)\n"
    "loop(jnp.arange(30.0));",
]
SIZE = {"width": 820, "height": 640}
# Screenshots have no mouse pointer.
POINTER = """() => {
  const arrow = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  arrow.setAttribute("viewBox", "0 0 16 24");
  arrow.style.cssText = "position:fixed;left:0;top:0;width:14px;z-index:99999;pointer-events:none";
  arrow.innerHTML =
    '<path d="M1 1v17l4-4 3 7 3-1-3-7h6z" fill="black" stroke="white" stroke-width="1.2"/>';
  document.body.append(arrow);
  document.addEventListener("mousemove", ({ clientX, clientY }) => {
    arrow.style.transform = `translate(${clientX}px, ${clientY}px)`;
  }, true);
}"""


class Film:
    """Screenshots of the cells of a notebook, each with the time for which it is shown."""

    def __init__(self, notebook):
        self.page, self.notebook = notebook.page, notebook
        self.frames, self.durations_ms = [], []
        self.pointer = (SIZE["width"] - 80, SIZE["height"] - 80)
        self.page.evaluate(POINTER)
        self.page.mouse.move(*self.pointer)

    def show(self, ms, *, settle=True):
        """Add the notebook as it looks now; `settle` waits until its animations have ended."""
        if settle:
            self.page.wait_for_timeout(700)
        cells = self.page.locator(".jp-WindowedPanel-outer").bounding_box()
        shot = self.page.screenshot(clip=cells)
        self.frames.append(Image.open(io.BytesIO(shot)).convert("RGB"))
        self.durations_ms.append(ms)

    def click(self, target):
        """Move the pointer to an element and click it."""
        x, y = self.pointer
        box = target.bounding_box()
        to_x, to_y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for part in (0.25, 0.5, 0.75, 0.9, 1.0):
            self.page.mouse.move(x + part * (to_x - x), y + part * (to_y - y))
            self.show(60, settle=False)
        self.pointer = to_x, to_y
        self.page.mouse.down()
        self.page.mouse.up()

    def save(self, path):
        first, *others = self.frames
        first.save(
            path,
            save_all=True,
            append_images=others,
            duration=self.durations_ms,
            loop=0,
            lossless=True,
            quality=100,
            method=6,
            minimize_size=True,
        )


def take_film(browser, server, theme, path):
    """Write a WebP animation of a session: the cell of the README, and a loop."""
    page = browser.new_page(viewport=SIZE, device_scale_factor=2)
    name = server.write(f"film-{path.stem}.ipynb", CELLS)
    notebook = Notebook(page, server, name, path="doc/tree")
    notebook.set_theme(theme)
    notebook.wait_for_kernel()
    film = Film(notebook)
    film.show(1500)
    for number, ms in ((0, 500), (1, 2500)):
        notebook.run_and_wait(number)
        film.show(ms)
    film.click(notebook.cell(1).locator(".jaxcb-disclosure"))
    film.show(4500)
    film.click(notebook.cell(1).get_by_role("button", name="details of jv").last)
    notebook.cell(1).locator(".jp-OutputArea").evaluate(
        "node => node.scrollIntoView({ block: 'start' })"
    )
    film.show(4500)
    notebook.cell(2).evaluate("node => node.scrollIntoView({ block: 'start' })")
    notebook.run_and_wait(2)
    film.show(1200)
    notebook.run(3)
    live = notebook.cell(3).locator(".jaxcb-live")
    live.get_by_text("timeline", exact=True).click()
    for _ in range(8):
        film.show(250, settle=False)
        page.wait_for_timeout(200)
    notebook.wait(3)
    film.show(2500)
    film.click(notebook.cell(3).get_by_role("button", name="Color by duration"))
    film.show(4000)
    film.save(path)
    page.close()
