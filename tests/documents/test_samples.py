"""Samples of output in the how-to guides are what the code prints.

"…" in a sample stands for any text. A time or size stands for any other.
"""

import re

import pytest
from IPython.core.interactiveshell import InteractiveShell

IMPORTS = """
import threading
import jax, jax.numpy as jnp, numpy as np, scipy.special
"""
PURE = "%%jax_callback pure --result x\n"
SIN = PURE + "def sin(x):\n    return np.sin(x)"
MODEL = PURE + "def model(x):\n    return x\n"
FINE = PURE + "\n".join(f"def {name}(x):\n    return x" for name in "abcde")
BOOM = PURE + "def boom(x):\n    raise ValueError('no luck')"

# Of each sample: its page, how it begins there, and the cells that print it.
SAMPLES = {
    "check": (
        "guide/check-and-test.md",
        "%jax_check scaled",
        """
%%jax_callback pure --result x --vmap-method expand_dims
def scaled(x):
    return x / x.max()
---
%jax_check scaled(np.float32([1, 2]))
""",
    ),
    "matrix": (
        "guide/why-not-called.md",
        "%jax_explain --matrix",
        f"""
{SIN}
---
x, n = 1.0, 2
---
def f(x):
    sin(x)
    y = sin(x) * n
    return y
---
%jax_explain --matrix f(x)
""",
    ),
    "failed function": (
        "guide/debug-errors.md",
        "Cell In[3]",
        """
%%jax_callback pure --result z
def bessel(v, z):
    if z > 1: raise ValueError("no luck")
    return scipy.special.jv(v, z)
---
def model(x):
    return bessel(1, x)

jax.vmap(model)(jnp.arange(4.0))
""",
    ),
    "first line of a host trace": (
        "guide/read-the-host-trace.md",
        "✕ boom raised",
        f"""
{BOOM}
---
{MODEL}
---
{FINE}
---
def program(x):
    model(x)
    return boom(a(b(c(d(e(x))))))
jax.jit(program)(1.0)
""",
    ),
    "host object": (
        "guide/host-objects.md",
        "host object factor",
        """
import jupyter_jaxcb as jaxcb
@jaxcb.host_object
def factor(values):
    return np.ones(1_000_000)
---
%%jax_callback pure --result values
def solve(values):
    return values * factor(values)[0]
---
values = jnp.arange(100_000.0)
jax.jit(lambda values: solve(values) + solve(2 * values - values))(values)
for _ in range(2): solve(values)
""",
    ),
    "running calls": (
        "guide/troubleshoot-hangs.md",
        "slow (pure, [4] line 1)",
        """
entered, left = threading.Event(), threading.Event()
class time:
    def sleep(seconds):
        entered.set()
        left.wait(60)
---
%%jax_callback pure --result x
def slow(x):
    time.sleep(4)
    return x
---
program = lambda: jax.jit(slow)(1.0).block_until_ready()
thread = threading.Thread(target=program, name="Thread-1 (<lambda>)")  # as in a new process
thread.start()
entered.wait(60)
---
%jax_callbacks --stacks
---
left.set(); thread.join()
""",
    ),
}


def lines_of(page, beginning):
    """Return the lines of the block that begins so, without the magic that prints them."""
    blocks = re.findall(r"^```.*?\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if block.startswith(beginning)]
    return [line for line in found.splitlines() if line and not line.startswith("%")]


def pattern(line):
    """Return a regular expression for a line of a sample."""
    time = r"\d[\d.]* (?:ns|µs|ms|s|kB|MB)\b"
    words = re.sub(time, "TIME", line).split()
    text = r"\s+".join(re.escape(word) for word in words)
    text = text.replace(r"\s+of\s+TIME", "")  # only front ends show the time of the cell
    return text.replace("TIME", time).replace("…", ".*?")


def missing(lines, printed):
    """Return the first line that is not in the printed text after those before it, or None."""
    position = 0
    for line in lines:
        found = re.compile(pattern(line)).search(printed, position)
        if not found:
            return line
        position = found.end()
    return None


@pytest.fixture
def printed(capsys):
    """Run cells in an IPython shell with the extension, and return what they print."""

    def run(cells):
        for cell in [IMPORTS, *cells.split("---\n")]:
            shell.run_cell(cell.strip("\n"), store_history=True)
        text = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
        return re.sub(r"File <ipython-input-(\d+)-\w+>:(\d+)", r"Cell In[\1], line \2", text)

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jupyter_jaxcb")
    yield run
    shell.run_line_magic("unload_ext", "jupyter_jaxcb")
    InteractiveShell.clear_instance()


@pytest.mark.parametrize(("page", "beginning", "cells"), SAMPLES.values(), ids=SAMPLES)
def test_sample_of_a_page_is_what_its_cells_print(page, beginning, cells, pages, printed):
    text = printed(cells)
    assert missing(lines_of(pages[page], beginning), text) is None, text
