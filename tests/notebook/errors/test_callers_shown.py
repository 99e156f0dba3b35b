"""In a real kernel, the frames of a program are shown with their cells, and the note names them."""

import re

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
