"""The registered callback: equality, late binding, lifetime, and eager calls."""

import gc
import inspect
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack import _callback

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def shared(x):
    return x + 1


class Compiles:
    """Counts programs compiled while it is entered."""

    def __enter__(self):
        self.count, self.entered = 0, True
        jax.monitoring.register_event_duration_secs_listener(self.hear)
        return self

    def hear(self, event, duration, **facts):
        # JAX 0.8 has no public way to take a listener away: this one just stops counting.
        self.count += self.entered and event.endswith("backend_compile_duration")

    def __exit__(self, *exc):
        self.entered = False


def parameter(function):
    jax.clear_caches()  # a fresh trace, or both sides are the same object
    (equation,) = jax.make_jaxpr(function)(1.0).eqns
    return equation.params["callback"]


def test_parameters_of_equal_functions_are_equal_from_whatever_line():
    a = parameter(lambda x: jaxcb.pure_callback(shared, SCALAR, x))
    b = parameter(lambda x: jaxcb.pure_callback(shared, SCALAR, x))
    assert a is not b and a.bind.site != b.bind.site  # the test's own premise
    assert a == b and hash(a) == hash(b)


def test_parameters_of_other_functions_or_trees_differ():
    a = parameter(lambda x: jaxcb.pure_callback(shared, SCALAR, x))
    assert a != parameter(lambda x: jaxcb.pure_callback(np.sin, SCALAR, x))
    assert a != parameter(lambda x: jaxcb.pure_callback(shared, SCALAR, x=x))
    assert a != object() and (a == 1) is False  # JAX's caches compare with anything


def test_bound_method_equals_itself():
    class Model:
        def step(self, x):
            return x

    model, other = Model(), Model()
    same = [parameter(lambda x: jaxcb.pure_callback(model.step, SCALAR, x)) for _ in range(2)]
    assert same[0] == same[1]
    assert same[0] != parameter(lambda x: jaxcb.pure_callback(other.step, SCALAR, x))


def test_unhashable_callable_works():
    class Host:
        __hash__ = None

        def __call__(self, x):
            return x + 1

    host = Host()
    f = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))
    assert float(f(1.0)) == 2.0
    assert float(jaxcb.pure_callback(host, SCALAR, 1.0)) == 2.0


def test_repr_in_a_jaxpr_is_short():
    text = str(jax.make_jaxpr(lambda x: jaxcb.pure_callback(shared, SCALAR, x))(1.0))
    assert "callback=shared@test_callback.py:" in text


@pytest.mark.parametrize("flavor", ["pure", "io", "debug"])
def test_eager_calls_compile_nothing(flavor):
    """Not for the first, not for a new shape, not for a lambda that is new every time."""
    x = jnp.arange(3.0)
    calls = []
    with Compiles() as compiles:
        for shape in range(3):
            y = x[:1] if shape else x
            host = lambda x: calls.append(1)  # noqa: E731
            if flavor == "debug":
                jaxcb.debug_callback(host, y)
            elif flavor == "io":
                jaxcb.io_callback(host, None, y)
            else:
                jaxcb.pure_callback(lambda x: calls.append(1) or x, y, y)
        before = compiles.count
        for _ in range(20):
            jaxcb.pure_callback(lambda x: x, x, x)
    assert len(calls) == 3
    assert compiles.count == before


def test_new_body_reaches_compiled_programs_without_tracing():
    """N5, from a script: functions at top level are looked up when they are called."""
    scope = {"jaxcb": jaxcb, "__name__": "some_module"}
    source = "@jaxcb.pure(result='x')\ndef host(x): return x + {}"
    exec(source.format(1), scope)
    traces = []

    @jax.jit
    def f(x):
        traces.append(1)
        return scope["host"](x)

    assert float(f(1.0)) == 2.0
    exec(source.format(10), scope)
    with Compiles() as compiles, jaxcb.record() as recorded:
        assert float(f(1.0)) == 11.0
    assert (len(traces), compiles.count) == (1, 0)
    assert [call.version for call in recorded.recording] == [2]


def test_new_interface_makes_a_new_callback_and_leaves_old_programs_alone():
    scope = {"jaxcb": jaxcb, "__name__": "some_module"}
    exec("@jaxcb.pure(result='x')\ndef other(x): return x + 1", scope)
    old = scope["other"]
    f = jax.jit(lambda x: old(x))
    assert float(f(1.0)) == 2.0
    exec("@jaxcb.pure(result='x', vmap_method='expand_dims')\ndef other(x): return x + 9", scope)
    assert float(f(1.0)) == 2.0
    assert float(jax.jit(lambda x: scope["other"](x))(1.0)) == 10.0
    assert old.host.replaced


def test_closures_are_bound_by_themselves():
    def make(n):
        @jaxcb.pure(result="x")
        def add(x):
            return x + n

        return add

    one, two = make(1), make(2)
    f = jax.jit(lambda x: (one(x), two(x)))
    assert [float(y) for y in f(0.0)] == [1.0, 2.0]


def test_program_keeps_its_host_function_and_lets_it_go_with_itself():
    class Host:
        def __call__(self, x):
            return x

    def run():
        host = Host()
        jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))(1.0)
        return weakref.ref(host)

    gone = run()
    jax.clear_caches()
    gc.collect()
    assert gone() is None


def test_registry_forgets_functions_that_are_gone():
    scope = {"jaxcb": jaxcb, "__name__": "short_lived"}
    exec("@jaxcb.io(result=None)\ndef f(x): pass", scope)
    assert "short_lived" in [module for module, _, _ in _callback._registered]
    scope.clear()
    gc.collect()
    assert "short_lived" not in [module for module, _, _ in _callback._registered]


def test_callback_is_not_registered_twice():
    with pytest.raises(TypeError, match=r"cannot register <pure callback .* again as io"):
        jaxcb.io(jaxcb.pure(shared, result="x"), result="x")


def test_operands_are_read_only_and_stay_as_they_are():
    kept = []
    mine = np.arange(3.0, dtype=np.float32)
    for call in (jaxcb.pure_callback, jax.jit(jaxcb.pure_callback, static_argnums=(0, 1))):
        call(lambda x: kept.append(x) or x, jax.ShapeDtypeStruct((3,), np.float32), mine)
    mine[:] = 7
    assert len(kept) == 2
    for x in kept:
        assert type(x) is np.ndarray and not x.flags.writeable
        assert x.tolist() == [0, 1, 2]


def test_host_function_may_go_on_writing_into_its_answer():
    # Aligned and large: JAX takes such an array over without a copy of its own.
    raw = np.zeros(100_016, np.float32)
    buffer = raw[-raw.ctypes.data % 64 // 4 :][:100_000]

    def host(x):
        buffer[:] = x
        return buffer

    struct = jax.ShapeDtypeStruct((100_000,), np.float32)
    calls = [lambda x: jaxcb.pure_callback(host, struct, x)]
    calls.append(jax.jit(calls[0]))
    for f in calls:
        first = f(jnp.ones(()))
        f(jnp.zeros(()))
        assert (first == 1).all()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (jaxcb.pure_callback, jax.pure_callback),
        (jaxcb.io_callback, io_callback),
        (jaxcb.debug_callback, jax.debug.callback),
        (jaxcb.debug_print, jax.debug.print),
    ],
    ids=["pure", "io", "debug", "print"],
)
def test_drop_in_takes_what_jax_takes(ours, theirs):
    def parameters(function):
        return {
            name: parameter.kind
            for name, parameter in inspect.signature(function).parameters.items()
            if not name.startswith("_") and name != "vectorized"  # gone since JAX 0.9
        }

    assert parameters(ours) == parameters(theirs)


def test_recorded_eager_calls_do_not_grow_but_for_their_rows():
    """100,000 of them keep one site and 40 bytes each."""
    with jaxcb.record() as recorded:
        for _ in range(1_000):
            jaxcb.debug_callback(shared, 1.0)
    recording = recorded.recording
    assert (len(recording), len(recording.bound), len(recording.lowered)) == (1_000, 1, 1)
    assert recording.calls.itemsize == 40


def test_methods_of_two_objects_are_two_host_functions():
    class Scale:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return self.n * x

        def by(self, x):
            return self.n * x

    for host in (lambda n: Scale(n).by, Scale):
        two, three = (jaxcb.pure(host(n), result=SCALAR) for n in (2, 3))
        assert [float(two(1.0)), float(three(1.0))] == [2.0, 3.0]


@pytest.mark.parametrize(
    "source",
    [
        # closures that bear another function's name
        "import functools\n"
        "def base(x): return x\n"
        "def make(n):\n"
        "    @functools.wraps(base)\n"
        "    def inner(x): return n * x\n"
        "    return inner\n"
        "made = [jaxcb.pure(make(n), result='x') for n in (1, 2, 3)]",
        # one def, run by a loop
        "made = []\n"
        "for n in (1, 2, 3):\n"
        "    def host(x, n=n): return n * x\n"
        "    made.append(jaxcb.pure(host, result='x'))",
    ],
    ids=["wrapped closures", "loop"],
)
def test_functions_of_one_name_that_are_not_new_bodies_stay_apart(source):
    scope = {"jaxcb": jaxcb, "__name__": "module_of_loops"}
    exec(source, scope)
    assert [float(f(1.0)) for f in scope["made"]] == [1.0, 2.0, 3.0]
    assert not any(f.host.replaced for f in scope["made"])


def test_going_back_to_an_interface_revives_its_programs():
    scope = {"jaxcb": jaxcb, "__name__": "back_and_forth"}
    define = "@jaxcb.{}(result='x')\ndef host(x): return x + {}"
    exec(define.format("pure", 1), scope)
    first = scope["host"]
    f = jax.jit(lambda x: first(x))
    f(0.0)
    exec(define.format("io", 10), scope)
    with jaxcb.record() as recorded:
        assert float(f(0.0)) == 1.0
    assert len(recorded.recording.stale) == 1
    exec(define.format("pure", 100), scope)
    with jaxcb.record() as recorded:
        assert float(f(0.0)) == 100.0
    assert not recorded.recording.stale


def test_result_function_typed_again_is_the_same_interface():
    scope = {"jaxcb": jaxcb, "__name__": "typed_again"}
    for n in (1, 10):
        exec(f"@jaxcb.pure(result=lambda x: x)\ndef host(x): return x + {n}", scope)
        if n == 1:
            first = scope["host"]
    assert first.host is scope["host"].host


def test_numbers_that_are_debugged_are_found_eagerly():
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="pure_callback"):
        jaxcb.pure_callback(lambda x: np.float32(np.nan), SCALAR, 1.0)


def test_interrupt_in_an_eager_callback_is_an_interrupt():
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jaxcb.pure_callback(stop, SCALAR, 1.0)
