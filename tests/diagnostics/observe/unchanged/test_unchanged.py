"""`observe_jax` does not change the programs it observes."""

import contextlib
import inspect
import logging
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import buffer_callback as _buffer
from jax._src import callback as _callback
from jax._src import source_info_util
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import FLAVORS, STRUCT, double, look, observed, one

flavors = pytest.mark.parametrize("flavor", FLAVORS)


@flavors
def test_jaxpr_prints_the_same(flavor):
    class Named:
        """A function whose repr contains no address."""

        __name__ = "named"

        def __repr__(self):
            return "named"

        def __call__(self, *args):
            return np.float32(1)

    named = Named()

    def f(x):
        if flavor == "jax pure":
            return jax.pure_callback(named, STRUCT, x)
        if flavor == "jax io":
            return io_callback(named, STRUCT, x)
        if flavor == "jax debug":
            return jax.debug.print("x is {}", x)
        return _buffer.buffer_callback(named, STRUCT)(x)

    plain = str(jax.make_jaxpr(f)(1.0))
    with jaxcb.observe_jax():
        assert str(jax.make_jaxpr(lambda x: f(x))(1.0)) == plain


@flavors
def test_source_info_of_the_bind_is_user_code(flavor):
    def source_line():
        (equation,) = jax.make_jaxpr(lambda x: FLAVORS[flavor](x))(one()).eqns
        frame = source_info_util.user_frame(_traceback(equation.source_info))
        return frame.file_name, frame.start_line, frame.function_name

    plain = source_line()
    with jaxcb.observe_jax():
        assert source_line() == plain


def _traceback(info):
    return info.traceback


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.ImpureFunctionWarning")
@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])
def test_host_function_gets_the_same_arguments(flavor, around):
    got = []

    def host(x, *, tree):
        got.append((type(x), x.devices(), x.committed, type(tree["a"][0]), x.tobytes()))
        return np.float32(1)

    def f(x):
        if flavor == "jax pure":
            return jax.pure_callback(host, STRUCT, x, tree={"a": (x,)})
        if flavor == "jax io":
            return io_callback(host, STRUCT, x, tree={"a": (x,)})
        return jax.debug.callback(host, x, tree={"a": (x,)})

    jax.block_until_ready(around(f)(one()))
    jax.effects_barrier()
    observed(lambda: around(lambda x: f(x))(one()))
    assert got[0] == got[1]
    assert len(got) == 2


@flavors
def test_nothing_is_compiled_more_often(flavor, compiles):
    def run():
        f = jax.jit(lambda x: FLAVORS[flavor](x))
        for _ in range(2):
            f(one())
            jax.vmap(lambda x: x + 1)(jnp.ones(2))
            FLAVORS[flavor](one())
            FLAVORS[flavor](one() + 1)

    counts = []
    for around in (contextlib.nullcontext, jaxcb.observe_jax):
        jax.clear_caches()
        with compiles() as counted, around():
            run()
        counts.append(counted.count)
    assert counts[0] == counts[1] > 0


def test_eager_program_compiled_before_is_not_compiled_again(compiles):
    FLAVORS["jax pure"](one())
    with compiles() as counted:
        observed(lambda: FLAVORS["jax pure"](one()))
    assert counted.count == 0


REFUSED = {
    "vmap without a method": lambda: jax.vmap(FLAVORS["jax pure"])(jnp.ones(3)),
    "vmap of ordered io": lambda: jax.vmap(lambda x: io_callback(look, None, x, ordered=True))(
        jnp.ones(3)
    ),
    "gradient of pure": lambda: jax.grad(FLAVORS["jax pure"])(one()),
    "gradient of io": lambda: jax.grad(FLAVORS["jax io"])(one()),
    "io in a cond with a batched predicate": lambda: jax.vmap(
        lambda x: jax.lax.cond(x > 0, lambda x: FLAVORS["jax io"](x), lambda x: x, x)
    )(jnp.ones(3)),
    "unhashable": lambda: jax.pure_callback(Unhashable(), STRUCT, one()),
    "not an array": lambda: jax.pure_callback(double, STRUCT, "text"),
    "64 bits": lambda: jax.pure_callback(double, jax.ShapeDtypeStruct((), np.int64), one()),
    "f-string": lambda: jax.debug.print("x", 1, x=2),
    "not callable": lambda: jax.debug.callback("text", 1),
    "wrong shape": lambda: jax.jit(
        lambda x: jax.pure_callback(lambda x: np.ones(3, np.float32), STRUCT, x)
    )(one()),
    "export": lambda: jax.export.export(jax.jit(FLAVORS["jax pure"]))(one()).serialize(),
}


class Unhashable:
    __hash__ = None

    def __call__(self, x):
        return x


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_jax_raises_the_same_errors(refused):
    def raised():
        with pytest.raises(Exception) as caught:
            jax.block_until_ready(refused())
        lines = str(caught.value).splitlines()
        return caught.type, [line for line in lines if "0x" not in line and "File" not in line][:2]

    logging.disable(logging.ERROR)  # JAX logs exceptions of host functions
    try:
        plain = raised()
        with jaxcb.observe_jax():
            assert raised() == plain
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])
def test_error_of_a_host_function_has_the_same_class_and_message(flavor, around, caplog):
    def fail(x):
        raise ValueError("no luck")

    def f(x):
        if flavor == "jax pure":
            return jax.pure_callback(fail, STRUCT, x)
        if flavor == "jax io":
            return io_callback(fail, STRUCT, x)
        return jax.debug.callback(fail, x, ordered=True)

    def raised():
        caplog.clear()
        with pytest.raises(Exception) as caught:
            jax.block_until_ready(around(lambda x: f(x))(one()))
            jax.effects_barrier()
        lines = str(caught.value).strip().splitlines()
        return caught.type, lines[0], lines[-1], [record.getMessage() for record in caplog.records]

    plain = raised()
    with jaxcb.observe_jax():
        assert raised() == plain


def test_log_record_of_debug_log_names_the_user_file(caplog):
    with caplog.at_level(logging.INFO), jaxcb.observe_jax():
        jax.jit(lambda x: jax.debug.log("x is {}", x))(one())
        jax.effects_barrier()
    (record,) = [r for r in caplog.records if r.getMessage() == "x is 1.0"]
    assert record.pathname == __file__


def test_replaced_functions_keep_their_signatures():
    plain = inspect.signature(_callback.pure_callback_impl)
    with jaxcb.observe_jax():
        assert inspect.signature(_callback.pure_callback_impl) == plain


def test_code_without_a_file_works_in_a_deleted_working_directory(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    names = {"jax": jax, "double": double, "STRUCT": STRUCT}
    code = compile("def f(x):\n    return jax.pure_callback(double, STRUCT, x)\n", "<gone>", "exec")
    exec(code, names)
    result, recording = observed(lambda: names["f"](one()))
    assert float(result) == 2
    assert [(s.file, s.line) for s in recording.bound] == [("<gone>", 2)]


@pytest.mark.long
def test_calls_on_several_devices_are_the_same_and_recorded(in_process):
    done = in_process(Path(__file__).with_name("devices.py"), devices=4)
    same = [line for line in done.stdout.splitlines() if line.endswith("same")]
    assert len(same) == 24, done.stdout + done.stderr
