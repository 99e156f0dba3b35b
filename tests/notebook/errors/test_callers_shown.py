"""In a real kernel, the frames of a program are shown with their cells, and the note names them."""

import re

import pytest

from tests._tracebacks import frames_of_cells, wrong_frames

HELPER = """
import jupyter_jaxcb as jaxcb
def boom(x): raise ValueError('no luck')
look = jaxcb.debug(boom)
def log(x):
    look(x)
"""


def test_frames_and_note_name_the_cells_of_a_program_and_of_its_helper(kernel):
    kernel.run(HELPER)
    kernel.run("def model(x):\n    y = 2 * x\n    log(y)\n    return y")
    ran = kernel.run("jax.jit(model)(1.0);\njax.effects_barrier()")
    assert ran.error[:2] == ("ValueError", "no luck")
    shown = ran.error[2]
    places = re.findall(r"Cell In\[(\d+)\], line (\d+), in (\w+)", shown)
    program = places[0][0]
    helper = str(int(program) - 1)
    assert places == [(program, "3", "model"), (helper, "5", "log"), (helper, "2", "boom")]
    assert "log(y)" in shown and "look(x)" in shown
    note = f"bound at cell In[{helper}], line 5, called from cell In[{program}], line 3, in call 1"
    assert note in shown


def test_frames_around_a_loop_in_eager_code_are_shown_once(kernel):
    kernel.run(HELPER)
    kernel.run("def step(carry, x):\n    log(x)\n    return carry, x")
    ran = kernel.run(
        "def run():\n    jax.lax.scan(step, 0, jnp.arange(3))\n    jax.effects_barrier()\nrun()"
    )
    names = re.findall(r"line \d+, in (\w+)\(", ran.error[2])
    assert names == ["run", "step", "log", "boom"]


# Cells, and the functions of the frames that a failure in them shows after the cell itself.
PROGRAMS = {
    "below the def": (
        "@jax.jit\ndef solve(m):\n    y = m + 1\n    # a comment\n\n    return log(y)\nsolve(1.0)",
        ["solve", "log"],
    ),
    "near a lambda": (
        "def solve(m):\n    key = lambda x: x\n    y = key(m)\n    return log(y)\n"
        "other = lambda x: x\njax.jit(lambda m: other(\n    solve(m)))(1.0)",
        ["<lambda>", "solve", "log"],
    ),
    "method": (
        "class Model:\n    @staticmethod\n    @jax.jit\n    def run(x):\n\n        log(x)\n"
        "Model.run(1.0)",
        ["Model.run", "log"],
    ),
    "nested": (
        "def outer():\n    def inner(x):\n        z = x\n        log(z)\n    return inner\n\n"
        "jax.jit(outer())(1.0)",
        ["outer.<locals>.inner", "log"],
    ),
    "comprehension": (
        "def solve(x):\n    key = lambda x: x\n    parts = [\n        log(key(x))\n"
        "        for _ in [1]\n    ]\n    return parts\njax.jit(solve)(1.0)",
        ["solve", "log"],
    ),
    "generator": (
        "def solve(x):\n    key = lambda x: x\n    return list(\n        log(key(x)) for _ in [1]\n"
        "    )\njax.jit(solve)(1.0)",
        ["solve", "log"],
    ),
    "class": (
        "@jax.jit\ndef solve(x):\n    class Model:\n        z = 1\n        y = log(x)\n"
        "    return Model.y\nsolve(1.0)",
        ["solve", "log"],
    ),
    "loop": (
        "def step(carry, x):\n    carry = carry\n    log(x)\n    return carry, x\n"
        "@jax.jit\ndef solve(x):\n    return jax.lax.scan(step, 0, x)\nsolve(jnp.arange(3.0))",
        ["solve", "step", "log"],
    ),
    "below magics": (
        "%%time\n%%jax_record\n\ndef solve(x):\n    y = x\n    log(y)\njax.jit(solve)(1.0)",
        ["solve", "log"],
    ),
    "call in several lines": (
        "def solve(x):\n    return log(\n        x +\n        1\n    )\njax.jit(solve)(1.0)",
        ["solve", "log"],
    ),
}


@pytest.mark.kept
@pytest.mark.parametrize("mode", ["Context", "Verbose"])
def test_arrow_of_each_frame_is_at_the_line_that_the_header_names(kernel, mode):
    kernel.run(HELPER.lstrip())
    kernel.run(f"%xmode {mode}")
    for name, (program, functions) in PROGRAMS.items():
        ran = kernel.run(f"{program}\njax.effects_barrier()")
        typed = eval(kernel.run("list(get_ipython().history_manager.input_hist_raw)").value)
        shown = [function for *_, function, _ in frames_of_cells(ran.error[2])]
        assert [function for function in shown if function] == [*functions, "boom"], name
        assert wrong_frames(ran.error[2], typed) == [], name
    kernel.run("%xmode Context")
