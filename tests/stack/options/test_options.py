"""The table of options: what the decorators, the magic and the messages take from it."""

import inspect
import itertools
import math

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack.options import FLAVORS, Options, checked, refusals, rows

DECORATORS = {name: getattr(jaxcb, name) for name in FLAVORS}
NOT_IN_ROWS = {"function", "result"}
# A value of each option; `None`: it changes nothing that a test of one device could see.
VALUES = {
    "vmap_method": "expand_dims", "ordered": True, "partitioned": True,
    "sharding": jax.sharding.SingleDeviceSharding(jax.devices()[0]), "arrays": "jax",
    "derivative": "finite", "gradient": "x", "linear": "x", "linear_self_adjoint": True,
    "has_side_effect": True, "queued": True, "on_full": "drop", "check": True, "cast": True,
    "executor": "threads:2", "chunksize": 2, "timeout": 60.0, "retries": 1, "compile": "numba",
}  # fmt: skip
PAIRS = [
    (flavor, *pair)
    for flavor in FLAVORS
    for pair in itertools.combinations([name for name, _ in rows(flavor) if name in VALUES], 2)
]


@pytest.mark.parametrize("flavor", [name for name in FLAVORS if name != "tap"])
def test_keywords_of_a_decorator_are_the_rows_of_its_flavor_with_their_defaults(flavor):
    parameters = inspect.signature(DECORATORS[flavor]).parameters
    given = {name: p.default for name, p in parameters.items() if name not in NOT_IN_ROWS}
    assert given == {name: row.default for name, row in rows(flavor)}


@pytest.mark.parametrize(
    "drop_in", [jaxcb.pure_callback, jaxcb.io_callback, jaxcb.debug_callback, jaxcb.debug_print]
)
def test_options_of_a_drop_in_have_the_names_of_rows(drop_in):
    names = {name for name, _ in rows()}
    of_jax = {"callback", "result_shape_dtypes", "fmt", "args", "kwargs"}
    others = {"skip_format_check"}  # that JAX has
    assert {*inspect.signature(drop_in).parameters} - of_jax - others <= names


def host_of(flavor, returns, seen, options=()):
    """A function that doubles or returns nothing; it notes size and kind of what it gets."""
    if flavor == "buffer":

        def write(out, x):
            seen.append((np.size(x), isinstance(x, jax.Array)))
            out[...] = 2 * x

        return write

    def host(x):
        seen.append((np.size(x), isinstance(x, jax.Array)))
        if "gradient" in options:
            return 2 * x, 0 * x + 2
        return 2 * x if returns else None

    return host


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")  # arrays="jax"
@pytest.mark.parametrize(("flavor", "one", "other"), PAIRS)
def test_each_pair_of_options_computes_what_a_loop_does_or_is_refused_by_the_table(
    flavor, one, other
):
    options = {one: VALUES[one], other: VALUES[other]}
    needs = {row.needs for name, row in rows() if name in options and row.needs} - {*options}
    options |= {name: VALUES[name] for name in needs}
    seen = []
    returns = flavor in ("pure", "buffer") or (flavor == "io" and not options.get("queued"))
    host = host_of(flavor, returns, seen, options)
    result = {"result": "x" if returns else None} if flavor != "debug" else {}
    if options.get("compile"):
        host = compilable_of(flavor, returns, options)
    try:
        callback = DECORATORS[flavor](host, **result, **options)
    except ValueError as error:
        assert str(error) in [sentence(row, options) for row in refusals]
        return
    x = np.arange(4, dtype=np.float32)
    loops = options.get("ordered") or options.get("partitioned")
    program = (lambda x: jax.lax.map(callback, x)) if loops else jax.vmap(callback)
    with jaxcb.record() as r:
        found = jax.jit(program)(x)
        jax.effects_barrier()
    if returns:
        np.testing.assert_array_equal(found, 2 * x)
    batched = options.get("vmap_method") == "expand_dims"
    assert len(r.recording) == (1 if batched else 4)
    if not options.get("compile"):
        kind = "arrays" in options  # whether they are JAX's
        assert seen == ([(4, kind)] if batched else [(1, kind)] * 4)


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")  # arrays="jax"
@pytest.mark.parametrize(
    ("flavor", "option"),
    [
        (flavor, name)
        for flavor in FLAVORS
        for name, _ in rows(flavor)
        if name in VALUES and flavor != "tap"
    ],
)
def test_each_option_goes_with_a_mask(flavor, option):
    needs = [row.needs for name, row in rows() if name == option and row.needs]
    options = {name: VALUES[name] for name in (option, *needs)}
    seen = []
    returns = flavor in ("pure", "buffer") or (flavor == "io" and not options.get("queued"))
    host = compilable_of(flavor, returns) if option == "compile" else None
    host = host or host_of(flavor, returns, seen, options)
    result = {"result": "x" if returns else None} if flavor != "debug" else {}
    callback = DECORATORS[flavor](host, **result, **options)
    otherwise = {"otherwise": -1} if returns else {}

    def masked(x):
        return callback.where(x % 2 == 1, x, **otherwise)

    x = np.arange(6, dtype=np.float32)
    loops = option in ("ordered", "partitioned")
    with jaxcb.record() as r:
        found = jax.jit((lambda x: jax.lax.map(masked, x)) if loops else jax.vmap(masked))(x)
        jax.effects_barrier()
    if returns:
        np.testing.assert_array_equal(found, np.where(x % 2 == 1, 2 * x, -1))
    assert len(r.recording) == (1 if option == "vmap_method" else 3)
    kind = option == "arrays"  # whether they are JAX's
    assert seen == {"vmap_method": [(3, False)], "compile": []}.get(option, [(1, kind)] * 3)


def compilable_of(flavor, returns, options=()):
    if "gradient" in options:
        return lambda x: (2 * x, 0 * x + 2)
    if flavor == "buffer":

        def write(out, x):
            out[...] = 2 * x

        return write
    return (lambda x: 2 * x) if returns else (lambda x: None)


def sentence(refusal, options):
    """What the table says of two options with these values."""
    made = Options(flavor="pure", **options)
    one, other = made.spelled(refusal.one), made.spelled(refusal.other)
    advice = refusal.advice or f"Drop {one} or {other}."
    return f"{one} cannot be combined with {other}: {refusal.reason}. {advice}"


def test_refused_pair_names_both_and_what_to_do():
    with pytest.raises(ValueError) as caught:
        checked("io", ordered=True, executor="threads:2")
    assert str(caught.value) == (
        "ordered=True cannot be combined with executor='threads:2': ordered calls run one after "
        "the other, in program order, but an executor runs them in parallel. Drop ordered=True or "
        "executor='threads:2'."
    )


def test_options_are_equal_by_value_but_executors_by_identity():
    class Pool:
        def __eq__(self, other):
            return True

        __hash__ = None

    one, other = Pool(), Pool()
    assert Options(flavor="pure", executor=one) == Options(flavor="pure", executor=one)
    assert Options(flavor="pure", executor=one) != Options(flavor="pure", executor=other)
    assert hash(Options(flavor="io", cast=True)) == hash(Options(flavor="io", cast=True))
    assert Options(flavor="io") != Options(flavor="debug")


@pytest.mark.parametrize("value", ["no", 1, [True]])
@pytest.mark.parametrize("name", ["ordered", "cast", "queued"])
def test_flag_that_is_no_boolean_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}=.* is neither True nor False"):
        jaxcb.io(lambda x: x, result="x", **{name: value})


@pytest.mark.parametrize("value", [["sequential"], {}])
def test_vmap_method_that_is_no_text_is_refused_with_the_methods(value):
    with pytest.raises(ValueError, match=r"unknown vmap method .* Pass vmap_method= one of"):
        jaxcb.pure(lambda x: x, result="x", vmap_method=value)


def test_rule_of_a_function_without_signature_is_refused_with_the_way_out():
    hypot = jaxcb.pure(math.hypot, result=jax.ShapeDtypeStruct((), np.float32))
    with pytest.raises(TypeError, match=r"its parameters are unknown\. Wrap it, as in def f"):
        hypot.defjvp(lambda primals, tangents: (primals[0], tangents[0]))


def test_star_import_has_every_public_name():
    names = {}
    exec("from jupyter_jaxcb import *", names)
    public = {name for name in dir(jaxcb) if name[0] != "_"}
    assert {name for name in public if not inspect.ismodule(getattr(jaxcb, name))} <= names.keys()
    assert names["record"] is jaxcb.record


@pytest.mark.parametrize("sharding", [jax.devices()[0], jax.devices()[:1], "cpu", 0])
@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io], ids=["pure", "io"])
def test_sharding_that_is_none_is_refused_with_what_to_pass(flavor, sharding):
    with pytest.raises(TypeError, match=r"sharding must be the device to call from, .*Pass"):
        flavor(lambda x: x, result="x", sharding=sharding)
