"""The time of a cell is that of its code: no compilation, magic, display, traceback or waiting.

Each cell notes when its last syntax tree was ready, when its code began and ended, and when IPython
first showed something after it.
"""

import re

import pytest

from tests.notebook.conftest import MIME

SETUP = """import ast, sys, threading, time
import jupyter_jaxcb as jaxcb
now = time.perf_counter_ns
noted = {}
same = jax.jit(jaxcb.pure(lambda x: x, result="x"))
log = jaxcb.io(lambda x: over.wait(), result=None, queued=True)
over = threading.Event()

class Parsed(ast.NodeTransformer):
    def visit(self, node):
        noted["parsed"] = now()
        return node

class Value:
    def _repr_html_(self):
        noted.setdefault("shown", now())

class Failure(Exception):
    def _render_traceback_(self):
        noted.setdefault("shown", now())
        return []

def write(text, before=sys.stdout.write):
    noted.setdefault("shown", now())
    return before(text)

def use(error=None):
    noted.pop("shown", None)
    noted["began"] = now()
    same(1.0).block_until_ready()
    noted["ended"] = now()
    if error:
        raise error
    return Value()

get_ipython().ast_transformers.append(Parsed())
def end():
    noted.setdefault("shown", now())
    cells.append(dict(noted))
    over.set()

cells = []
get_ipython().events.register("post_execute", end)
sys.stdout.write = write
use()"""
CELLS = {
    "a value": "use()",
    "no value": "use();",
    "several statements": "x = 1\nuse();\nx = 2\nuse()",
    "an error": "use(Failure())",
    "an error of ours": "use(Failure('with a message'))",
    "time": "%%time\nuse()",
    "time of statements": "%%time\nx = 1\nuse()",
    "time of a line": "%time use()",
    "record": "%%jax_record run\nuse()",
    "record of a failure": "%%jax_record run\nuse(Failure())",
    "two magics": "%%jax_record run\n%%time\nuse()",
    "two more magics": "%%time\n%%jax_record run\nuse()",
    "capture": "%%capture\n_ = use()",
    "await": "import asyncio; await asyncio.sleep(0)\nuse()",
}


@pytest.fixture(scope="module")
def timed(lasting_kernel):
    kernel = lasting_kernel()
    kernel.run("import jax\n%load_ext jupyter_jaxcb")
    assert kernel.run(SETUP).error is None
    return kernel


def trace_of(ran):
    ((_, measured),) = ran.traces
    return measured[MIME]


@pytest.mark.kept
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_time_of_a_cell_is_that_of_its_code(timed, cell):
    trace = trace_of(timed.run(cell))
    noted = timed.run("print(*map(cells[-1].get, ['parsed', 'began', 'ended', 'shown']))")
    parsed, began, ended, shown = map(int, noted.text.split())
    assert ended - began <= trace["wall_ns"] <= shown - parsed
    assert re.fullmatch(
        r"[\d.]+ .?s: host functions [^,]+(, compilation [^,]+)?, rest [^,]+", trace["time"]
    )
    if "run" in cell.split("use")[0]:
        assert timed.run("print(run.wall_ns)").text.split() == [str(trace["wall_ns"])]


@pytest.mark.kept
def test_recorded_block_in_a_cell_has_no_time_for_its_own_begin_and_end(timed):
    timed.run("from tests.interface import spent_in_blocks as spent")
    trace = trace_of(timed.run("before = spent()\nwith jaxcb.record() as r:\n    _ = use()"))
    noted = timed.run(
        "print(r.recording.wall_ns, spent() - before, "
        "*map(cells[-1].get, ['parsed', 'began', 'ended', 'shown']))"
    )
    block, begin_and_end, parsed, began, ended, shown = map(int, noted.text.split())
    assert ended - began <= block <= trace["wall_ns"] <= shown - parsed - begin_and_end
    assert begin_and_end > 0


@pytest.mark.kept
def test_calls_after_the_code_are_no_part_of_its_time(timed):
    timed.run("over.clear()")
    trace = trace_of(timed.run("_ = use(); jax.jit(log)(1.0);"))
    noted = timed.run("print(*map(cells[-1].get, ['parsed', 'shown']))")
    parsed, shown = map(int, noted.text.split())
    assert trace["wall_ns"] <= shown - parsed
