"""id_print: the exact text."""

import collections
import io

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import pretty_printer as pp  # what the removed module laid its text out with

from jupyter_jaxcb import host_callback as hcb
from jupyter_jaxcb.host_callback._print import layout

WAYS = {"eager": lambda f: f, "jit": jax.jit}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class Writes(list):
    """A stream that remembers every write."""

    def write(self, text):
        self.append(text)


@pytest.fixture
def stream():
    return Writes()


def test_without_a_stream_it_is_the_print_of_the_moment(monkeypatch):
    printed = []
    monkeypatch.setattr("builtins.print", printed.append)
    hcb.id_print(1.0, what="x")
    assert printed == ["what: x", "1."]


def printed(way, given, stream, **words):
    jax.block_until_ready(way(lambda x: hcb.id_print(x, output_stream=stream, **words))(given))
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


@ways
@pytest.mark.parametrize(("given", "text"), VALUES, ids=[text for _, text in VALUES])
def test_value_is_one_line(stream, way, given, text):
    assert printed(way, given, stream) == [f"{text}\n"]


@ways
def test_words_come_first_sorted_by_key(stream, way):
    found = printed(way, 1.0, stream, what="w", b=2, a=[1])
    assert found == ["a: [1] b: 2 what: w\n", "1.\n"]


def test_transforms_are_a_list_among_the_words(stream):
    printed(jax.vmap, jnp.arange(3), stream, what="w")
    assert stream == ["transforms: [('batch', {'batch_dims': (0,)})] what: w\n", "[0 1 2]\n"]


def test_transpose_is_its_name_alone(stream):
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


@ways
def test_device_is_among_the_words(stream, way):
    device = jax.devices()[0]
    found = printed(way, 1.0, stream, what="w", tap_with_device=True)
    assert found == [f"device: {device} what: w\n", "1.\n"]


@ways
def test_automatic_device_takes_the_place_of_a_word(stream, way):
    found = printed(way, 1.0, stream, device="mine", tap_with_device=True)
    assert found == [f"device: {jax.devices()[0]}\n", "1.\n"]
    assert printed(way, 1.0, Writes(), device="mine") == ["device: mine\n", "1.\n"]


@ways
def test_word_transforms_is_a_type_error_at_run_time(stream, way):
    f = way(lambda x: hcb.id_print(x, output_stream=stream, transforms=1))
    assert jax.block_until_ready(f(1.0)) == 1.0
    with pytest.raises(hcb.CallbackException, match="TypeError"):
        hcb.barrier_wait()
    assert stream == []


@ways
def test_standard_output_is_that_of_the_moment(capsys, way):
    f = way(lambda x: hcb.id_print(x, what="x"))
    jax.block_until_ready(f(1.0))
    hcb.barrier_wait()
    assert capsys.readouterr().out == "what: x\n1.\n"
    other = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", other)
        jax.block_until_ready(f(2.0))
        hcb.barrier_wait()
    assert other.getvalue() == "what: x\n2.\n"


@ways
def test_threshold_is_numpys(stream, way):
    printed(way, np.arange(1000), stream)
    assert "..." not in stream[0]
    assert "..." in printed(way, np.arange(1001), Writes())[0]
    assert printed(way, np.arange(8), Writes(), threshold=5) == ["[0 1 2 ... 5 6 7]\n"]


def test_print_options_are_those_of_the_call(stream):
    """As debug_print has it: XLA may print from a thread that knows of no others."""
    f = jax.jit(lambda x: hcb.id_print(x, output_stream=stream))
    x = np.float32([0.12345])
    with np.printoptions(precision=2):
        jax.block_until_ready(f(x))
    jax.block_until_ready(f(x))
    hcb.barrier_wait()
    assert stream == ["[0.12]\n"] * 2


def test_group_that_does_not_fit_puts_each_element_on_its_own_line(stream):
    given = {"first": np.arange(30), "second": (1, 2), "third": [np.arange(28), 3]}
    printed(jax.jit, given, stream)
    numbers = np.array2string(np.arange(28))
    assert stream == [
        f"{{ first={np.array2string(np.arange(30))}\n"
        "  second=( 1 2 )\n"
        f"  third=[ {numbers}\n"
        "    3 ] }\n"
    ]


def as_jax_had_it(value):
    """The removed module's own layout, on JAX's printer."""

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


@hypothesis.settings(max_examples=300)
@hypothesis.given(trees)
def test_layout_is_that_of_the_removed_module(value):
    assert layout(value) == as_jax_had_it(value)
