"""``%%jax_watch``: the values of a cell, in a real kernel."""

import re

import pytest

pytestmark = pytest.mark.slow
LOAD = "%load_ext jupyter_jaxcb"
STEP = """
def step(x, s):
    y = jnp.sqrt(x - s)
    return y, y * 2
scales = np.float32([1, 0.2, 5, 1])
"""


@pytest.fixture(scope="module")
def prepared(lasting_kernel):
    kernel = lasting_kernel()
    assert kernel.run(f"{LOAD}\nimport jax, jax.numpy as jnp, numpy as np\n{STEP}").error is None
    return kernel


def last_shown(kernel, code):
    """Run a cell, and return what it shows at its end: the output is updated while it runs."""
    kernel.client.execute(code)
    shown = None
    while True:
        message = kernel.client.get_iopub_msg(timeout=60)
        kind, content = message["msg_type"], message["content"]
        assert kind != "error", content
        if kind in ("display_data", "update_display_data"):
            shown = content["data"]
        if content.get("execution_state") == "idle":
            kernel.client.get_shell_msg(timeout=60)
            return shown


def test_cell_shows_its_variables_and_the_first_bad_value(prepared):
    code = "%%jax_watch --to seen\n\nout, doubled = jax.lax.scan(step, 3.0, scales)\n"
    shown = last_shown(prepared, code)
    text = shown["text/plain"]
    assert re.search(r"^\[2\]\n +3  out +float32\[\] +1 +", text, re.M)
    assert re.search(r"^\[1\]\n +5  y +float32\[\] +4 .* 2 +█▁xx  ← first bad value$", text, re.M)
    told = "line 5 of step: `jnp.sqrt(x - s)` gave NaN in step 2, forward; its inputs were finite:"
    assert f"[1] {told}" in text
    assert "gave NaN in step 2" in shown["text/html"]
    assert "<script" not in shown["text/html"]
    assert prepared.run("seen.first_bad.steps").value == "(2,)"


def test_stop_ends_the_cell_with_the_sentence(prepared):
    ran = prepared.run("%%jax_watch --first nan --stop\njax.lax.scan(step, 3.0, scales)")
    name, message, _ = ran.error
    assert name == "FloatingPointError"
    assert message.startswith("[1] line 5 of step: `jnp.sqrt(x - s)` gave NaN in step 2, forward;")


def test_number_of_the_user_and_names_are_taken(prepared):
    prepared.run(
        "%%jax_watch y --number norm=jnp.linalg.norm --to seen\n"
        "y = jnp.array([3.0, 4.0])\nother = y + 1"
    )
    assert prepared.run("[(s.name, s.own['norm'].item()) for s in seen.series]").value == (
        "[('y', 5.0)]"
    )


def test_sink_of_a_cell_gets_all_steps_and_its_exception_ends_the_cell(prepared):
    prepared.run("got = []\ndef log(step, values):\n    got.append((step, values['y']))")
    prepared.run("%%jax_watch y --sink log\njax.lax.scan(step, 4.0, np.ones(1000) - 1)")
    assert prepared.run("[n for n, _ in got] == [*range(1000)], got[0]").value == "(True, (0, 2.0))"
    ran = prepared.run(
        "%%jax_watch --sink 'lambda step, values: 1 / 0'\nprint(np.sqrt(step(1.0, 0)))"
    )
    assert ran.error[0] == "ZeroDivisionError"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--sink foo", "--sink: NameError: name 'foo' is not defined"),
        ("--sink 3", "to=3 is not a function"),
        ("--every x", "invalid int value: 'x'"),
        ("--number foo", "--number foo is no NAME=FUNCTION, such as norm=jnp.linalg.norm."),
        ("--number a=foo", "NameError: name 'foo' is not defined"),
        ("--fisrt nan", "did you mean '--first'?"),
        ("--compare jnp", "'jnp' is not what a cell has seen. Run the cell to compare with under"),
        ("--to 1", "'1' is not a valid name. Write %%jax_watch --to NAME."),
        ('--first "abs(x)"', "is not an expression of x that returns one boolean"),
    ],
)
def test_wrong_line_is_refused_before_the_cell_runs(prepared, line, words):
    ran = prepared.run(f"%%jax_watch {line}\nprint('has run')")
    assert words in ran.text + str(ran.error)
    assert "has run" not in ran.text


@pytest.mark.parametrize(("cell", "threads"), [("cell-a", "1"), (None, "0")])
def test_output_is_updated_while_the_cell_runs_only_if_somebody_may_look(prepared, cell, threads):
    """nbconvert, which saves what is shown, and nbval send no id of a cell."""
    code = (
        "%%jax_watch\nimport threading\n"
        "sum(thread.name == 'jupyter_jaxcb watch' for thread in threading.enumerate())"
    )
    assert prepared.run(code, cell).value == threads


def test_cell_says_what_differs_from_an_earlier_one(prepared):
    cell = "np.float32([1, {}]) * jnp.ones(2)"
    assert prepared.run(f"%%jax_watch --to before\nout = {cell.format(2)}").error is None
    shown = last_shown(prepared, f"%%jax_watch out --compare before\n\nout = {cell.format(3)}")
    words = "line 3 of <module>: out differs: mean 2, was 1.5"
    assert re.match(rf"\[\d+\] {re.escape(words)}\nline ", shown["text/plain"])
    assert words.replace("<module>", "&lt;module&gt;") in shown["text/html"]


def interrupted(kernel, code):
    """Run a cell and interrupt it at its second update; return the error and what is shown."""
    shown, errors = [], []

    def receive(message):
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data"):
            shown.append(content["data"].get("text/plain"))
            if len(shown) == 2:
                kernel.manager.interrupt_kernel()
        elif message["msg_type"] == "error":
            errors.append(content["ename"])

    kernel.run_cell(code, "cell", receive)
    return errors, shown[-1]


def test_interrupted_cell_keeps_what_was_seen(prepared, tmp_path):
    loop = "while True:\n    for m in range(3):\n        y = jnp.sin(jnp.float32(m))"
    errors, shown = interrupted(prepared, f"%%jax_watch --to seen\n{loop}")
    assert errors == ["KeyboardInterrupt"]
    assert "no value was NaN" in shown
    path = str(tmp_path / "values.csv")
    rows = prepared.run(f"seen.save({path!r}); len(seen.rows)").value
    assert int(rows) > 10
    assert len((tmp_path / "values.csv").read_text().splitlines()) == int(rows) + 1


def test_every_sends_fewer_steps_of_a_loop_of_the_cell(prepared):
    prepared.run("%%jax_watch y --every 4 --to seen\njax.lax.scan(step, 4.0, np.zeros(12))")
    assert prepared.run("len(seen.series[0].steps)").value == "3"
