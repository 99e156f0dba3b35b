"""``%%jax_record --jax`` and ``%jax_record auto --jax``."""

import pytest

from jupyter_jaxcb.report import MIME_TYPE as MIME

PURE = """
def twice(x):
    return 2 * np.asarray(x)

f = jax.jit(lambda x: jax.pure_callback(twice, jax.ShapeDtypeStruct((), np.float32), x))
f(np.float32(2));
"""


@pytest.fixture(autouse=True)
def _fresh(kernel):
    kernel.run("jax.clear_caches()")
    yield
    kernel.run("%jax_record auto")


def sites(ran):
    return [(s["function"], s["flavor"], s["status"], s["calls"]) for s in ran.sites]


def test_record_with_the_option_jax_records_callbacks_of_jax(kernel):
    ran = kernel.run(f"%%jax_record --jax kept\n{PURE}")
    assert ran.error is None
    assert sites(ran) == [("twice", "jax pure", "kept", 1)]
    assert ran.sites[0]["where"] == "line 6"
    assert kernel.run("len(kept)").value == "1"


def test_record_without_the_option_records_none(kernel):
    ran = kernel.run(f"%%jax_record\n{PURE}")
    assert (ran.error, ran.traces) == (None, [])
    kernel.run(f"%%jax_record --jax\n{PURE}")
    assert kernel.run(PURE).traces == []


def test_auto_with_the_option_jax_records_every_cell_until_auto_without_it(kernel):
    kernel.run("%jax_record auto --jax")
    assert sites(kernel.run(PURE)) == [("twice", "jax pure", "kept", 1)]
    assert sites(kernel.run("f(np.float32(3));")) == [("twice", "jax pure", "kept", 1)]
    assert kernel.run("1 + 1").traces == []
    kernel.run("%jax_record auto")
    assert kernel.run("f(np.float32(3));").traces == []


def test_cell_without_callbacks_of_jax_prints_a_message(kernel):
    ran = kernel.run("%%jax_record --jax\nx = 1")
    assert ran.traces == []
    assert ran.text.startswith("none of JAX's own callbacks were called")
    assert "jax.clear_caches()" in ran.text


ELIDED = """@jax.jit
def ignored(x):
    jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((), np.float32), x)
    jax.pure_callback(lambda x: 2 * x, jax.ShapeDtypeStruct((), np.float32), x)
    return x + 1

ignored(np.float32(0)).block_until_ready();
"""


@pytest.mark.kept
@pytest.mark.parametrize("earlier", ["", ELIDED])
def test_cell_whose_callbacks_are_all_elided_shows_them_and_says_nothing_else(kernel, earlier):
    if earlier:
        assert kernel.run(earlier).traces == []
    run = "ignored(np.float32(1)).block_until_ready();"
    ran = kernel.run(f"%%jax_record --jax\n{run if earlier else ELIDED}")
    assert [status for _, _, status, _ in sites(ran)] == ["unused", "unused"]
    assert "none of JAX's own callbacks" not in ran.text
    assert "unknown" not in ran.text


STEP = """@jax.jit
def step(x):
    jax.debug.print("x = {}", x)
    jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((), np.float32), x)
    return x + 1

step(np.float32(0)).block_until_ready();
"""
STEPS = "x = np.float32(1)\nfor _ in range(5):\n    x = step(x)\nx.block_until_ready();"


@pytest.mark.parametrize("magic", ["%%jax_record --jax", "%%jax_profile"])
def test_program_of_an_earlier_cell_has_its_lines_and_statuses(kernel, magic):
    assert kernel.run(STEP).traces == []
    ran = kernel.run(f"{magic}\n{STEPS}")
    ((_, metadata),) = ran.traces
    shown = [(s["where"], s["status"], s["calls"], s["expected"]) for s in ran.sites]
    assert shown == [
        ("line 3, another cell", "kept", 5, 5),
        ("line 4, another cell", "unused", 0, 0),
    ]
    assert [site["cell_line"] for site in metadata[MIME]["sites"]] == [3, 4]
    assert kernel.run(STEPS).traces == []


def test_switched_off_before_it_is_loaded_the_extension_notes_nothing(kernel):
    kernel.run("%unload_ext jupyter_jaxcb\n%env JUPYTER_JAXCB=off\n%load_ext jupyter_jaxcb")
    try:
        assert kernel.run(IS_PATCHED).value == "False"
    finally:
        kernel.run("%unload_ext jupyter_jaxcb\nimport os; del os.environ['JUPYTER_JAXCB']")
        kernel.run("%load_ext jupyter_jaxcb")


IS_PATCHED = "from jax._src.callback import pure_callback_p as p\n'bind' in vars(p)"
CALLS_ARE_PATCHED = "from jax._src import callback as c\n'__wrapped__' in vars(c.io_callback_impl)"


def test_calls_are_not_patched_after_a_failing_cell(kernel):
    ran = kernel.run("%%jax_record --jax\n1 / 0")
    assert ran.error[0] == "ZeroDivisionError"
    assert kernel.run(CALLS_ARE_PATCHED).value == "False"


def test_unloading_restores_jax(kernel):
    kernel.run("%jax_record auto --jax")
    assert kernel.run(CALLS_ARE_PATCHED).value == "True"
    kernel.run("%unload_ext jupyter_jaxcb")
    assert kernel.run(CALLS_ARE_PATCHED).value == "False"
    assert kernel.run(IS_PATCHED).value == "False"
    kernel.run("%load_ext jupyter_jaxcb")


def test_switched_off_it_prints_a_message_and_writes_no_file(kernel, tmp_path):
    file = tmp_path / "kept.json"
    kernel.run("%jax_record off\n%env JUPYTER_JAXCB=off")
    try:
        ran = kernel.run(f"%%jax_record --jax --save '{file}' kept\n{PURE}")
        assert ran.error is None and not ran.traces
        assert "nothing was recorded and no file was written, because JUPYTER_JAXCB=off" in ran.text
        assert "clear_caches" not in ran.text and not file.exists()
    finally:
        kernel.run("import os; del os.environ['JUPYTER_JAXCB']")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%jax_record", "%jax_record takes auto or off. To record one cell"),
        ("%jax_record on", "%jax_record takes auto or off, not 'on'"),
        ("%jax_record --values", "%jax_record takes auto or off. To record one cell"),
        ("%jax_record auto --save a.json", "--save is for one cell"),
        ("%%jax_record off\n1", "write %jax_record off on a separate line"),
        ("%%jax_record auto\n1", "write %jax_record auto on a separate line"),
        ("%%jax_record 1x\n1", "'1x' is not a valid name. Write %%jax_record NAME."),
        ("%%jax_record class\n1", "'class' is not a valid name. Write %%jax_record NAME."),
        ("%%jax_record --jx\n1", "did you mean '--jax'?"),
    ],
)
def test_wrong_line_is_a_usage_error_with_advice(kernel, line, words):
    text = kernel.run(line).text
    assert text.startswith("UsageError: ") and words in text


def test_error_for_a_file_that_is_not_a_recording_has_no_internal_frames(kernel, tmp_path):
    (tmp_path / "a.json").write_text("words")
    ran = kernel.run(f"import jupyter_jaxcb\njupyter_jaxcb.load('{tmp_path / 'a.json'}')")
    assert ran.error[0] == "RecordingFileError" and "recording/_" not in ran.error[2]
