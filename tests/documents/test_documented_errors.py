"""Every error that a public docstring names is raised, by a call in the table below.

A class without a call fails here, and so does a call whose class is not in the docstring. Refused
combinations of options have tests of their own; the decorators have one row for all of them.
"""

import builtins
import concurrent.futures
import inspect
import re
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb
from jupyter_jaxcb import jax_compat, testing

from .conftest import DOCS
from .test_reference import DIRECTIVE, public_value

SECTION = re.compile(r"^Raises:\n((?: {4}.*\n)*)", re.MULTILINE)
X = np.float32([1, 2, 3])
NOTHING = jaxcb.Recording()


def fail(*_):
    raise ArithmeticError("no luck")


def same(x):
    return x


def program(callback):
    jax.block_until_ready(jax.jit(callback)(X))
    jax.effects_barrier()


def enter(block, call=lambda value: None):
    with block as value:
        call(value)


def gradient(callback):
    jax.grad(lambda x: callback(x).sum())(X)


def shut_down():
    executor = concurrent.futures.ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


def without(patch, module):
    patch.setitem(sys.modules, module, None)


def unknown_jax(patch):
    """Make this version of JAX one that the package does not know."""
    patch.setattr(jax_compat, "missing", lambda subject: "name")
    patch.setattr("jupyter_jaxcb.jax_compat._subjects.missing", lambda subject: "name")


def watched(**options):
    """Run a program whose values are bad."""
    enter(jaxcb.watching(**options), lambda _: jax.jit(lambda x: jnp.log(x - 2))(X))


def twice(with_block):
    enter(with_block(), lambda _: enter(with_block()))


def unawaited(with_block):
    enter(with_block(), lambda _: jax.jit(jaxcb.io(fail, result=None))(X))


def closing_failed():
    kept = jaxcb.host_object(lambda x: types.SimpleNamespace(), close=fail)
    kept(X)
    kept.clear()


def needs_itself():
    kept = jaxcb.host_object(lambda x: kept(x))
    kept(X)


def tapped(function):
    hcb.id_tap(function, X)
    hcb.barrier_wait()


def of_buffer(function=lambda out, x: None, result=X, x=X, **options):
    return jax.jit(jaxcb.buffer_callback(function, result, **options))(x)


def direct(callback, function=same):
    return lambda x: callback(function, x, x)


def compiled(patch, register):
    without(patch, "numba")
    register(same, result="x", compile="numba")


def with_vjp():
    callback = jaxcb.pure(same, result="x")
    callback.defvjp(lambda x: (callback(x), None), lambda _, ct: (ct,))
    return callback


pure = jaxcb.pure(same, result="x")
Flags, FLAGS = type(hcb.flags), "stack.flavors.taps._flags.Flags."
BAD = {"vmap_method": "some"}

# The public name, the class as documented, a part of the message, and a call that fails, which gets
# pytest's monkeypatch and a folder.
ROWS = [
    ("pure", "TypeError", "not a function", lambda m, _: jaxcb.pure(3, result=X)),
    ("pure", "TypeError", "not an executor", lambda m, _: jaxcb.pure(same, executor=3)),
    ("pure", "ValueError", "result", lambda m, _: jaxcb.pure(same)),
    ("pure", "ValueError", "unknown vmap", lambda m, _: jaxcb.pure(same, result="x", **BAD)),
    ("pure", "ValueError", "shut down", lambda m, _: jaxcb.pure(same, executor=shut_down())),
    ("pure", "ImportError", "numba", lambda m, _: compiled(m, jaxcb.pure)),
    ("io", "TypeError", "not a function", lambda m, _: jaxcb.io(3, result=None)),
    ("io", "TypeError", "not an executor", lambda m, _: jaxcb.io(same, executor=3)),
    ("io", "ValueError", "result", lambda m, _: jaxcb.io(same)),
    ("io", "ValueError", "unknown on_full", lambda m, _: jaxcb.io(same, queued=True, on_full="")),
    ("io", "ValueError", "needs queued", lambda m, _: jaxcb.io(same, on_full="drop")),
    ("io", "ValueError", "result of", lambda m, _: jaxcb.io(same, result=X, queued=True)),
    ("io", "ValueError", "comb", lambda m, _: jaxcb.io(same, ordered=True, executor="threads")),
    ("io", "ImportError", "numba", lambda m, _: compiled(m, jaxcb.io)),
    ("io", "NotImplementedError", "rematerialize=False", lambda m, _: (
        jax.grad(jax.checkpoint(lambda x: jaxcb.io(same, result=X)(1.0) * jnp.sin(x)))(1.0)
    )),
    ("debug", "TypeError", "not a function", lambda m, _: jaxcb.debug(3)),
    ("debug", "ValueError", "unknown on_full", lambda m, _: jaxcb.debug(queued=True, on_full="")),
    ("debug", "ValueError", "needs queued", lambda m, _: jaxcb.debug(on_full="drop")),
    ("buffer", "TypeError", "not a function", lambda m, _: jaxcb.buffer(3, result=X)),
    ("buffer", "ValueError", "result", lambda m, _: jaxcb.buffer(lambda out: None)),
    ("buffer", "ImportError", "numba", lambda m, _: compiled(m, jaxcb.buffer)),
    ("tap", "TypeError", "not a function", lambda m, _: jaxcb.tap(3)),
    ("pure_callback", "ValueError", "vmap", lambda m, _: jaxcb.pure_callback(same, X, X, **BAD)),
    ("pure_callback", "ValueError", "64", lambda m, _: jaxcb.pure_callback(same, np.zeros(3), X)),
    ("pure_callback", "ValueError", "diff", lambda m, _: gradient(direct(jaxcb.pure_callback))),
    ("pure_callback", "TypeError", "hashable", lambda m, _: jaxcb.pure_callback(same, X, {3}, [])),
    ("pure_callback", "NotImplementedError", "vmap_method", lambda m, _: (
        jax.vmap(lambda x: jaxcb.pure_callback(same, x, x))(X)
    )),
    ("pure_callback", "jax.errors.JaxRuntimeError", "no luck", lambda m, _: (
        program(direct(jaxcb.pure_callback, fail))
    )),
    ("io_callback", "ValueError", "vmap", lambda m, _: jaxcb.io_callback(same, X, X, **BAD)),
    ("io_callback", "ValueError", "ordered", lambda m, _: (
        jax.vmap(lambda x: jaxcb.io_callback(same, x, x, ordered=True))(X)
    )),
    ("io_callback", "ValueError", "diff", lambda m, _: gradient(direct(jaxcb.io_callback))),
    ("io_callback", "ValueError", "64", lambda m, _: jaxcb.io_callback(same, np.zeros(3), X)),
    ("io_callback", "TypeError", "hashable", lambda m, _: jaxcb.io_callback(same, X, {3}, [])),
    ("io_callback", "jax.errors.JaxRuntimeError", "no luck", lambda m, _: (
        program(direct(jaxcb.io_callback, fail))
    )),
    ("debug_callback", "TypeError", "callable", lambda m, _: jaxcb.debug_callback(3, X)),
    ("debug_callback", "TypeError", "two-call", lambda m, _: jaxcb.debug_callback(None, X)),
    ("debug_callback", "ValueError", "vmap", lambda m, _: jaxcb.debug_callback(same, X, **BAD)),
    ("debug_print", "ValueError", "Unused", lambda m, _: jaxcb.debug_print("x", X)),
    ("debug_print", "IndexError", "index", lambda m, _: jaxcb.debug_print("{}")),
    ("debug_print", "KeyError", "x", lambda m, _: jaxcb.debug_print("{x}")),
    ("debug_print", "TypeError", "two-call", lambda m, _: jaxcb.debug_print(None, X)),
    ("buffer_callback", "ValueError", "vmap", lambda m, _: of_buffer(**BAD)),
    ("buffer_callback", "ValueError", "same shape", lambda m, _: (
        of_buffer(result=X[:2], input_output_aliases={0: 0})
    )),
    ("buffer_callback", "ValueError", "64", lambda m, _: of_buffer(result=np.zeros(3))),
    ("buffer_callback", "TypeError", "int8", lambda m, _: of_buffer(x=jnp.zeros(3, "int4"))),
    ("buffer_callback", "TypeError", "key_data", lambda m, _: of_buffer(x=jax.random.key(0))),
    ("buffer_callback", "NotImplementedError", "vmap_method", lambda m, _: (
        jax.vmap(lambda x: of_buffer(x=x))(X)
    )),
    ("buffer_callback", "jax.errors.JaxRuntimeError", "no luck", lambda m, _: of_buffer(fail)),
    ("register.Callback.where", "TypeError", "boolean", lambda m, _: pure.where(1, X, otherwise=0)),
    ("register.Callback.where", "TypeError", "otherwise", lambda m, _: pure.where(True, X)),
    ("register.Callback.where", "TypeError", "tap", lambda m, _: jaxcb.tap(same).where(True, X)),
    ("register.Callback.where", "ValueError", "scalar", lambda m, _: (
        pure.where(X > 1, X, otherwise=0)
    )),
    ("register.PureCallback.defjvp", "TypeError", "defvjp", lambda m, _: with_vjp().defjvp(same)),
    ("register.PureCallback.defvjp", "TypeError", "None", lambda m, _: with_vjp().defvjp(same)),
    ("register.PureCallback.deftranspose", "TypeError", "linear", lambda m, _: (
        pure.deftranspose(same)
    )),
    ("register.PureCallback.defresidual", "TypeError", "linear", lambda m, _: (
        pure.defresidual(same)
    )),
    ("disabled", "NotImplementedError", "leave out", lambda m, _: (
        enter(jaxcb.disabled(), lambda _: pure(X))
    )),
    ("set_queue_limit", "ValueError", "bytes", lambda m, _: jaxcb.set_queue_limit(-1)),
    ("host_object", "ValueError", "number of objects", lambda m, _: (
        jaxcb.host_object(same, max_objects=0)
    )),
    ("host_object", "ValueError", "seconds", lambda m, _: jaxcb.host_object(same, max_age=0)),
    ("host_object", "ValueError", "size", lambda m, _: jaxcb.host_object(same, max_bytes="3 X")),
    ("host_object", "ValueError", "returned -1", lambda m, _: (
        jaxcb.host_object(same, size=lambda x: -1)(X)
    )),
    ("host_object", "RuntimeError", "own object", lambda m, _: needs_itself()),
    ("host_object", "TypeError", "needs a function", lambda m, _: jaxcb.host_object(3)),
    ("host_object", "TypeError", "not a function", lambda m, _: jaxcb.host_object(same, size=3)),
    ("host_object", "TypeError", "key_data", lambda m, _: (
        jaxcb.host_object(same)(jax.random.key(0))
    )),
    ("host_object", "TypeError", "trace", lambda m, _: jax.jit(jaxcb.host_object(same))(X)),
    ("host_object", "TypeError", "close=", lambda m, _: jaxcb.host_object(int, close=fail)(3)),
    ("capabilities.HostObject.clear", "ExceptionGroup", "closing", lambda m, _: closing_failed()),
    ("call_info", "RuntimeError", "host", lambda m, _: jaxcb.call_info()),
    ("strict_errors", "RuntimeError", "0.10.0", lambda m, _: [
        unknown_jax(m), jaxcb.strict_errors()
    ]),
    ("record", "ValueError", "capacity", lambda m, _: jaxcb.record(-1)),
    ("record", "jax.errors.JaxRuntimeError", "no luck", lambda m, _: unawaited(jaxcb.record)),
    ("diagnostics.Record.recording", "RuntimeError", "after the block", lambda m, _: (
        enter(jaxcb.record(), lambda r: r.recording)
    )),
    ("observe_jax", "ValueError", "capacity", lambda m, _: jaxcb.observe_jax(-1)),
    ("observe_jax", "jax.errors.JaxRuntimeError", "no luck", lambda m, _: (
        unawaited(jaxcb.observe_jax)
    )),
    ("profile", "ValueError", "capacity", lambda m, _: jaxcb.profile(-1)),
    ("profile", "jax.errors.JaxRuntimeError", "no luck", lambda m, _: unawaited(jaxcb.profile)),
    ("profile", "RuntimeError", "running already", lambda m, _: twice(jaxcb.profile)),
    ("diagnostics.Profiled.profile", "RuntimeError", "after the block", lambda m, _: (
        enter(jaxcb.profile(), lambda p: p.profile)
    )),
    ("watching", "ValueError", "number of steps", lambda m, _: jaxcb.watching(every=0)),
    ("watching", "ValueError", "no function", lambda m, _: jaxcb.watching(norm=3)),
    ("watching", "ValueError", "not a function", lambda m, _: jaxcb.watching(to=3)),
    ("watching", "ValueError", "condition", lambda m, _: jaxcb.watching(first="y > 1")),
    ("watching", "ValueError", "does not choose", lambda m, _: jaxcb.watching("2")),
    ("watching", "RuntimeError", "another block", lambda m, _: twice(jaxcb.watching)),
    ("watch", "TypeError", "not a function", lambda m, _: jaxcb.watch("loss")),
    ("watching", "FloatingPointError", "NaN", lambda m, _: watched(first="nan", stop=True)),
    ("Watch.compare", "TypeError", "another block", lambda m, _: (
        enter(jaxcb.watching(), lambda seen: seen.compare(3))
    )),
    ("Watch.compare", "ValueError", "rtol=-1", lambda m, _: (
        enter(jaxcb.watching(), lambda seen: seen.compare(seen, rtol=-1))
    )),
    ("Watch.save", "ValueError", "End its name", lambda m, to: (
        enter(jaxcb.watching(), lambda seen: seen.save(to / "a.txt"))
    )),
    ("Watch.save", "OSError", "No such file", lambda m, to: (
        enter(jaxcb.watching(), lambda seen: seen.save(to / "none" / "a.csv"))
    )),
    ("watchdog", "ValueError", "seconds", lambda m, _: jaxcb.watchdog(0)),
    ("load", "RecordingFileError", "not a recording", lambda m, _: jaxcb.load(__file__)),
    ("load", "OSError", "No such file", lambda m, to: jaxcb.load(to / "none.jaxcb")),
    ("Recording.save", "ValueError", "End the name", lambda m, to: NOTHING.save(to / "a")),
    ("Recording.save", "OSError", "No such file", lambda m, to: NOTHING.save(to / "b" / "a.json")),
    ("Recording.from_json", "RecordingFileError", "not a recording", lambda m, _: (
        jaxcb.Recording.from_json("{}")
    )),
    ("Recording.to_pandas", "ModuleNotFoundError", "pip install", lambda m, _: [
        without(m, "pandas"), NOTHING.to_pandas()
    ]),
    ("export", "TypeError", "only a Recording", lambda m, to: jaxcb.export(3, to / "a.csv")),
    ("export", "ValueError", "End the name", lambda m, to: jaxcb.export(NOTHING, to / "a")),
    ("export", "OSError", "No such file", lambda m, to: jaxcb.export(NOTHING, to / "b" / "a.csv")),
    ("check", "TypeError", "cannot check", lambda m, _: jaxcb.check(3)),
    ("check", "TypeError", "no registered", lambda m, _: jaxcb.check(same, X)),
    ("check", "TypeError", "argument", lambda m, _: jaxcb.check(pure, X, X)),
    ("check", "Exception", "no luck", lambda m, _: jaxcb.check(fail, X)),
    ("check", "ValueError", "result", lambda m, _: (
        jaxcb.check(jaxcb.pure(same, result="x[9]"), X[0])
    )),
    ("explain", "TypeError", "pass the function", lambda m, _: jaxcb.explain(3)),
    ("explain", "RuntimeError", "0.10.0", lambda m, _: [unknown_jax(m), jaxcb.explain(same)(X)]),
    ("explain", "Exception", "no luck", lambda m, _: jaxcb.explain(fail)(X)),
    ("explain_matrix", "TypeError", "pass the function", lambda m, _: jaxcb.explain_matrix(3)),
    ("explain_matrix", "Exception", "no luck", lambda m, _: jaxcb.explain_matrix(fail)(X)),
    ("testing.host_calls", "RuntimeError", "JUPYTER_JAXCB=off", lambda m, _: [
        m.setenv("JUPYTER_JAXCB", "off"), testing.host_calls()
    ]),
    ("host_callback.id_tap", "TypeError", "needs a function", lambda m, _: hcb.id_tap(3, X)),
    ("host_callback.id_tap", "TypeError", "valid JAX type", lambda m, _: hcb.id_tap(same, "text")),
    ("host_callback.id_tap", "ValueError", "out of range", lambda m, _: (
        hcb.id_tap(same, X, device_index=99)
    )),
    ("host_callback.call", "TypeError", "needs a function", lambda m, _: hcb.call(3, X)),
    ("host_callback.call", "ValueError", "in result_shape", lambda m, _: (
        hcb.call(same, X, result_shape="text")
    )),
    ("host_callback.call", "ValueError", "out of range", lambda m, _: (
        hcb.call(same, X, device_index=99)
    )),
    ("host_callback.call", "NotImplementedError", "vmap", lambda m, _: (
        jax.vmap(lambda x: hcb.call(same, x, result_shape=x))(X)
    )),
    ("host_callback.call", "jax.errors.JaxRuntimeError", "no luck", lambda m, _: (
        program(lambda x: hcb.call(fail, x, result_shape=x))
    )),
    ("host_callback.barrier_wait", "CallbackException", "no luck", lambda m, _: tapped(fail)),
    (FLAGS + "update", "AttributeError", "Use one of", lambda m, _: Flags().update("a", 1)),
    (FLAGS + "update", "TypeError", "must be bool", lambda m, _: (
        Flags().update("raise_at_once", 1)
    )),
    (FLAGS + "read_environment", "ValueError", "removed", lambda m, _: [
        m.setenv("JAX_HOST_CALLBACK_AD_TRANSFORMS", "1"), Flags().read_environment()
    ]),
]  # fmt: skip


def documented():
    """Yield every public name that a page of the reference has, and each class it may raise."""
    for page in sorted((DOCS / "reference").glob("*.md")):
        for name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            value = public_value(name)
            methods = dir(value) if inspect.isclass(value) and not is_error(value) else []
            public = [getattr(value, one) for one in methods if one[0] != "_"]
            for one in [value, *public]:
                section = SECTION.search(f"{inspect.getdoc(one)}\n")
                for word in re.findall(r"^    ([\w.]+): ", section[1] if section else "", re.M):
                    yield one, word


def is_error(value):
    return issubclass(value, BaseException)


def test_every_documented_error_has_a_call_and_every_call_is_documented():
    in_table = {(public_value(f"jupyter_jaxcb.{name}"), word) for name, word, *_ in ROWS}
    assert in_table == set(documented())


@pytest.mark.parametrize(
    "name, word, message, call", ROWS, ids=[f"{row[0]} {row[1]} {row[2]}" for row in ROWS]
)
def test_call_raises_the_documented_error(name, word, message, call, monkeypatch, tmp_path):
    kinds = {**vars(builtins), **{name: getattr(jaxcb, name) for name in dir(jaxcb)}, **vars(hcb)}
    kind = kinds.get(word) or getattr(jax.errors, word.rpartition(".")[2])
    with pytest.raises(kind, match=re.escape(message)):
        call(monkeypatch, tmp_path)
