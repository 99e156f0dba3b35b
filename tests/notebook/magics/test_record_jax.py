"""``%%jax_record --jax`` and ``%jax_record auto --jax``."""

import pytest

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


def reported(ran):
    return [(s["function"], s["flavor"], s["status"], s["calls"]) for s in ran.sites]


def test_cell_with_jax_records_callbacks_of_jaxs_own(kernel):
    ran = kernel.run(f"%%jax_record --jax kept\n{PURE}")
    assert ran.error is None
    assert reported(ran) == [("twice", "jax pure", "kept", 1)]
    assert ran.sites[0]["where"] == "line 6"
    assert kernel.run("len(kept)").value == "1"


def test_cell_without_it_does_not(kernel):
    ran = kernel.run(f"%%jax_record\n{PURE}")
    assert (ran.error, ran.traces) == (None, [])
    kernel.run(f"%%jax_record --jax\n{PURE}")
    assert kernel.run(PURE).traces == []


def test_auto_with_jax_records_every_cell_until_auto_without(kernel):
    kernel.run("%jax_record auto --jax")
    assert reported(kernel.run(PURE)) == [("twice", "jax pure", "kept", 1)]
    assert reported(kernel.run("f(np.float32(3));")) == [("twice", "jax pure", "kept", 1)]
    assert kernel.run("1 + 1").traces == []
    kernel.run("%jax_record auto")
    assert kernel.run("f(np.float32(3));").traces == []


def test_cell_without_callbacks_of_jax_prints_a_message(kernel):
    ran = kernel.run("%%jax_record --jax\nx = 1")
    assert ran.traces == []
    assert ran.text.startswith("none of JAX's own callbacks were called")
    assert "jax.clear_caches()" in ran.text


def test_cell_that_runs_a_program_compiled_before_prints_a_message(kernel):
    kernel.run(PURE)
    ran = kernel.run("%%jax_record --jax\nf(np.float32(3));")
    ((name, flavor, status, calls),) = reported(ran)
    assert (name, flavor, status, calls) == ("twice", "jax pure", "kept", 1)
    assert "compiled before" in ran.trace["text/plain"]
    assert ran.text == ""


def test_jax_is_as_it_was_after_a_cell_that_fails(kernel):
    ran = kernel.run("%%jax_record --jax\n1 / 0")
    assert ran.error[0] == "ZeroDivisionError"
    seen = kernel.run("from jax._src.callback import pure_callback_p as p\n'bind' in vars(p)")
    assert seen.value == "False"


def test_unloading_ends_it(kernel):
    kernel.run("%jax_record auto --jax")
    kernel.run("%unload_ext jupyter_jaxcb")
    seen = kernel.run("from jax._src.callback import pure_callback_p as p\n'bind' in vars(p)")
    assert seen.value == "False"
    kernel.run("%load_ext jupyter_jaxcb")


def test_without_recording_a_message_is_shown_and_no_file_is_written(kernel, tmp_path):
    file = tmp_path / "kept.json"
    kernel.run("%jax_record off\n%env JUPYTER_JAXCB=off")
    try:
        ran = kernel.run(f"%%jax_record --jax --save '{file}' kept\n{PURE}")
        assert ran.error is None and not ran.traces
        assert "nothing was recorded and no file was written, because JUPYTER_JAXCB=off" in ran.text
        assert "clear_caches" not in ran.text and not file.exists()
    finally:
        kernel.run("import os; del os.environ['JUPYTER_JAXCB']")


def test_option_that_a_line_cannot_have_is_reported(kernel):
    assert "--save is for one cell" in kernel.run("%jax_record auto --save a.json").text
    assert "did you mean '--jax'?" in kernel.run("%%jax_record --jx\n1").text


def test_file_that_is_no_recording_is_reported_without_a_frame_of_ours(kernel, tmp_path):
    (tmp_path / "a.json").write_text("words")
    ran = kernel.run(f"import jupyter_jaxcb\njupyter_jaxcb.load('{tmp_path / 'a.json'}')")
    assert ran.error[0] == "RecordingFileError" and "recording/_" not in ran.error[2]
