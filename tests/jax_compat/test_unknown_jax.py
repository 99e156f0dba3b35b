"""With a JAX that lacks a private name, its subject is off, a sentence says so, and calls work."""

import jax
import pytest

from jupyter_jaxcb.jax_compat import missing

INSTALL = "Install JAX 0.10.0 to 0.12.0, or a newer jupyter_jaxcb."

# JAX needs these names itself, so they are hidden only from what is imported later.
HIDE = """
    import importlib, json, sys, types, warnings
    import jax

    real = importlib.import_module("jax._src.{place}")

    class Without(types.ModuleType):
        def __getattr__(self, name):
            if name == "{name}":
                raise AttributeError(name)
            return getattr(real, name)

        def __setattr__(self, name, value):
            setattr(real, name, value)

    package, _, last = real.__name__.rpartition(".")
    sys.modules[real.__name__] = Without(real.__name__)
    setattr(sys.modules[package], last, sys.modules[real.__name__])
"""

CALL = """
    import jupyter_jaxcb as jaxcb

    called, values = [], []
    double = jaxcb.pure(lambda x: called.append(1) or 2 * x, result="x")

    def use():
        {use}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in (3.0, 4.0):
            run = jax.jit(lambda x: double(x) + 1)
            use()
    print(json.dumps([values, len(called), [str(one.message) for one in caught]]))
"""

RECORD = """
        with jaxcb.record() as r:
            values.append(float(run(x)))
        assert len(r.recording) == 1
"""
INTERRUPT = """
        try:
            with jaxcb.record():
                values.append(float(run(x)))
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
"""
WATCH = """
        with jaxcb.watching() as seen:
            values.append(float(run(x)))
        assert "watching is off" in str(seen)
"""
OBSERVE = """
        with jaxcb.observe_jax() as r:
            values.append(float(run(x)))
            jax.jit(lambda x: jax.debug.print("{}", x, ordered=True))(x)
        assert len(r.recording) == 1
"""

SUBJECTS = {
    "statuses": ("pjit", "_infer_params", RECORD,
                 "statuses are off: recordings have host calls, but no calls that JAX or XLA "
                 "removed"),
    "runs": ("api", "_post_hook_state", RECORD,
             "runs are not counted, and blocks do not wait for programs with only pure callbacks"),
    "interrupts": ("pjit", "_get_fastpath_data", INTERRUPT,
                   "interrupts are off: after Ctrl-C, host calls may still be made"),
    "watch": ("pjit", "_trace_for_jit", WATCH, "watching is off"),
    "observation": ("callback", "pure_callback_impl", OBSERVE,
                    "observation is off: JAX's own callbacks are not recorded"),
}  # fmt: skip


@pytest.mark.parametrize("subject", SUBJECTS)
def test_subject_without_one_of_its_names_is_off_with_a_sentence_and_calls_work(
    in_process, subject
):
    place, name, use, is_off = SUBJECTS[subject]
    program = HIDE.replace("{place}", place).replace("{name}", name) + CALL.replace("{use}", use)
    values, called, sentences = in_process(program).value
    assert (values, called) == ([7.0, 9.0], 2)
    assert sentences == [
        f"JAX {jax.__version__} has no jax._src.{place}.{name}, so {is_off}. {INSTALL}"
    ]


@pytest.mark.parametrize(
    "place, name", [("core", "abstract_token"), ("effects", "ordered_effects")]
)
def test_import_without_a_name_that_calls_need_fails_and_names_it(in_process, place, name):
    refused = """
    try:
        import jupyter_jaxcb
    except ImportError as error:
        print(json.dumps(str(error)))
    """
    message = in_process(HIDE.replace("{place}", place).replace("{name}", name) + refused).value
    head = (
        f"jupyter_jaxcb does not support JAX {jax.__version__}: it has no jax._src.{place}.{name}"
    )
    assert message.startswith(head) and message.endswith(INSTALL)


@pytest.mark.parametrize("subject", ["calls", *SUBJECTS])
def test_this_jax_has_every_private_name(subject):
    assert not missing(subject)
