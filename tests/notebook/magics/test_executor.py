"""``%%jax_callback --executor`` and its options."""

import pytest

BODY = "def twice(x):\n    return 2 * x"


@pytest.mark.parametrize("executor", ["threads", "processes:2", "pool"])
def test_functions_of_a_cell_run_in_the_executor(kernel, executor):
    kernel.run(
        "import jax, numpy, concurrent.futures\npool = concurrent.futures.ThreadPoolExecutor(2)"
    )
    options = f"--executor {executor} --timeout 30 --chunksize 2"
    assert kernel.run(f"%%jax_callback pure --result x {options}\n{BODY}").error is None
    ran = kernel.run("jax.vmap(twice)(numpy.arange(5)).tolist(), twice.settings['timeout']")
    assert ran.value == "([0, 2, 4, 6, 8], 30.0)"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--executor threds", "did you mean 'threads'?"),
        (
            "--executor processes --arrays jax",
            "arrays='jax' cannot be combined with executor='processes'",
        ),
        ("--timeout 3", "timeout=3.0 needs executor="),
        (
            "--executor threads --chunksize soon",
            "chunksize='soon' is not a valid number of batch elements",
        ),
        ("--executor taken", "executor=3 is not an executor"),
        (
            "--executor threads --chunksize 0",
            "chunksize=0 is not a valid number of batch elements",
        ),
        ("--executor threads --timeout -1", "timeout=-1.0 is not a valid number of seconds"),
        ("--executor threads --timeout nan", "timeout=nan is not a valid number of seconds"),
    ],
)
def test_error_for_a_wrong_option_has_advice(kernel, line, words):
    kernel.run("taken = 3")
    ran = kernel.run(f"%%jax_callback pure --result x {line}\ndef thrice(x):\n    return 3 * x")
    shown = ran.text + (" ".join(map(str, ran.error)) if ran.error else "")
    assert words in shown
    assert kernel.run("'thrice' in globals()").value == "False"
