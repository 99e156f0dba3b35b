"""`id_print` writes exactly the text of the removed module."""

import collections
import io

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import pretty_printer as pp  # the removed module used it for its layout

from jupyter_jaxcb import host_callback as hcb
from tests.interface import printed_layout

MODES = {"eager": lambda f: f, "jit": jax.jit}
eager_and_jit = pytest.mark.parametrize("around", MODES.values(), ids=MODES)


class Writes(list):
    """A stream that lists every write."""

    def write(self, text):
        self.append(text)


@pytest.fixture
def stream():
    return Writes()


def test_without_a_stream_it_calls_the_current_builtin_print(monkeypatch):
    printed = []
    monkeypatch.setattr("builtins.print", printed.append)
    hcb.id_print(1.0, what="x")
    assert printed == ["what: x", "1."]


def printed(around, given, stream, **keywords):
    jax.block_until_ready(
        around(lambda x: hcb.id_print(x, output_stream=stream, **keywords))(given)
    )
    hcb.barrier_wait()
    return stream


Pair = collections.namedtuple("Pair", "a b")
VALUES = [
    (3.0, "3."),
    (3, "3"),
    (True, "True"),
    (1j, "0.+1.j"),
    (np.arange(3.0), "[0. 1. 2.]"),
    (np.zeros(0), "[]"),
    ((1, 2.0), "( 1 2. )"),
    (Pair(1, 2), "( 1 2 )"),
    ([1, 2], "[ 1 2 ]"),
    ({"b": 1, "a": 2}, "{ a=2 b=1 }"),
    ((), "(  )"),
    ([], "[  ]"),
    ({}, "{  }"),
    (None, "None"),
    ({"k": (np.arange(2), [None, 1])}, "{ k=( [0 1] [ None 1 ] ) }"),
]


@eager_and_jit
@pytest.mark.parametrize(("given", "text"), VALUES, ids=[text for _, text in VALUES])
def test_value_is_printed_on_one_line(stream, around, given, text):
    assert printed(around, given, stream) == [f"{text}\n"]


@eager_and_jit
def test_keywords_are_printed_first_sorted_by_key(stream, around):
    found = printed(around, 1.0, stream, what="w", b=2, a=[1])
    assert found == ["a: [1] b: 2 what: w\n", "1.\n"]


def test_transforms_are_printed_among_the_keywords(stream):
    printed(jax.vmap, jnp.arange(3), stream, what="w")
    assert stream == ["transforms: [('batch', {'batch_dims': (0,)})] what: w\n", "[0 1 2]\n"]


def test_transpose_is_printed_as_its_name(stream):
    f = lambda x: hcb.id_print(x, output_stream=stream)  # noqa: E731
    transposed = lambda ct: jax.linear_transpose(f, 1.0)(ct)[0]  # noqa: E731
    jax.block_until_ready(transposed(5.0))
    jax.block_until_ready(jax.vmap(transposed)(jnp.arange(2.0)))
    hcb.barrier_wait()
    assert stream == [
        "transforms: ['transpose']\n",
        "5.\n",
        "transforms: ['transpose', ('batch', {'batch_dims': (0,)})]\n",
        "[0. 1.]\n",
    ]


@eager_and_jit
def test_device_is_printed_among_the_keywords(stream, around):
    device = jax.devices()[0]
    found = printed(around, 1.0, stream, what="w", tap_with_device=True)
    assert found == [f"device: {device} what: w\n", "1.\n"]


@eager_and_jit
def test_automatic_device_replaces_a_keyword(stream, around):
    found = printed(around, 1.0, stream, device="mine", tap_with_device=True)
    assert found == [f"device: {jax.devices()[0]}\n", "1.\n"]
    assert printed(around, 1.0, Writes(), device="mine") == ["device: mine\n", "1.\n"]


@eager_and_jit
def test_keyword_transforms_is_a_type_error_at_run_time(stream, around):
    f = around(lambda x: hcb.id_print(x, output_stream=stream, transforms=1))
    assert jax.block_until_ready(f(1.0)) == 1.0
    with pytest.raises(hcb.CallbackException, match="TypeError"):
        hcb.barrier_wait()
    assert stream == []


@eager_and_jit
def test_text_goes_to_the_current_standard_output(capsys, around):
    f = around(lambda x: hcb.id_print(x, what="x"))
    jax.block_until_ready(f(1.0))
    hcb.barrier_wait()
    assert capsys.readouterr().out == "what: x\n1.\n"
    other = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", other)
        jax.block_until_ready(f(2.0))
        hcb.barrier_wait()
    assert other.getvalue() == "what: x\n2.\n"


@eager_and_jit
def test_default_threshold_is_that_of_numpy(stream, around):
    printed(around, np.arange(1000), stream)
    assert "..." not in stream[0]
    assert "..." in printed(around, np.arange(1001), Writes())[0]
    assert printed(around, np.arange(8), Writes(), threshold=5) == ["[0 1 2 ... 5 6 7]\n"]


def test_print_options_are_those_at_tracing_time(stream):
    """XLA may print from a thread that does not have them, as with `jaxcb.debug_print`."""
    f = jax.jit(lambda x: hcb.id_print(x, output_stream=stream))
    x = np.float32([0.12345])
    with np.printoptions(precision=2):
        jax.block_until_ready(f(x))
    jax.block_until_ready(f(x))
    hcb.barrier_wait()
    assert stream == ["[0.12]\n"] * 2


def test_group_that_is_too_wide_puts_each_element_on_a_separate_line(stream):
    given = {"first": np.arange(30), "second": (1, 2), "third": [np.arange(28), 3]}
    printed(jax.jit, given, stream)
    numbers = np.array2string(np.arange(28))
    assert stream == [
        f"{{ first={np.array2string(np.arange(30))}\n"
        "  second=( 1 2 )\n"
        f"  third=[ {numbers}\n"
        "    3 ] }\n"
    ]


def removed_layout(value):
    """Lay out `value` as the removed module did, with JAX's pretty printer."""

    def group(opening, items, closing):
        inner = pp.nest(2, pp.join(pp.brk(), items))
        return pp.group(pp.concat([pp.text(f"{opening} "), inner, pp.text(f" {closing}")]))

    def show(value):
        if isinstance(value, tuple):
            return group("(", [show(v) for v in value], ")")
        if isinstance(value, list):
            return group("[", [show(v) for v in value], "]")
        if isinstance(value, dict):
            return group("{", [pp.text(f"{k}=") + show(v) for k, v in sorted(value.items())], "}")
        if isinstance(value, np.ndarray):
            return pp.text(np.array2string(value))
        return pp.text(str(value))

    return show(value).format(width=80)


leaves = st.one_of(
    st.none(),
    st.integers(0, 40).map(np.arange),
    st.integers(1, 12).map(lambda n: np.arange(2.0 * n).reshape(2, n)),
    st.text("xyz", max_size=30),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text("abc", min_size=1, max_size=9), inner, max_size=4),
    ),
    max_leaves=12,
)


@pytest.mark.long
@hypothesis.settings(max_examples=300)
@hypothesis.given(trees)
def test_layout_is_that_of_the_removed_module(value):
    assert printed_layout(value) == removed_layout(value)
