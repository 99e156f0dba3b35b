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


def sites(ran):
    return [(s["function"], s["flavor"], s["status"], s["calls"]) for s in ran.sites]


def test_record_with_the_option_jax_records_callbacks_of_jax(kernel):
    ran = kernel.run(f"%%jax_record --jax kept\n{PURE}")
    assert ran.error is None
    assert sites(ran) == [("twice", "jax pure", "kept", 1)]
    assert ran.sites[0]["where"] == "line 6"
    assert kernel.run("len(kept)").value == "1"


def test_auto_with_the_option_jax_records_every_cell_until_auto_without_it(kernel):
    kernel.run("%jax_record auto --jax")
    assert sites(kernel.run(PURE)) == [("twice", "jax pure", "kept", 1)]
    assert sites(kernel.run("f(np.float32(3));")) == [("twice", "jax pure", "kept", 1)]
    assert kernel.run("1 + 1").traces == []
    kernel.run("%jax_record auto")
    assert kernel.run("f(np.float32(3));").traces == []


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
        assert sites(kernel.run(earlier)) == []
    run = "ignored(np.float32(1)).block_until_ready();"
    ran = kernel.run(f"%%jax_record --jax\n{run if earlier else ELIDED}")
    assert [status for _, _, status, _ in sites(ran)] == ["unused", "unused"]
    assert "none of JAX's own callbacks" not in ran.text
    assert "unknown" not in ran.text


def test_switched_off_before_it_is_loaded_the_extension_notes_nothing(kernel):
    kernel.run("%unload_ext jupyter_jaxcb\n%env JUPYTER_JAXCB=off\n%load_ext jupyter_jaxcb")
    try:
        assert kernel.run(IS_PATCHED).value == "False"
    finally:
        kernel.run("%unload_ext jupyter_jaxcb\nimport os; del os.environ['JUPYTER_JAXCB']")
        kernel.run("%load_ext jupyter_jaxcb")


IS_PATCHED = "from jax._src.callback import pure_callback_p as p\n'bind' in vars(p)"


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
