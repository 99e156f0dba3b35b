"""The examples of the guide to several devices run on four devices, as it says."""

import re

import pytest

from ._blocks import REPOSITORY, python_blocks


@pytest.mark.long
def test_examples_print_one_call_and_four_calls(in_process):
    text = (REPOSITORY / "docs/guide/several-devices.md").read_text("utf-8")
    first, second = python_blocks(text)
    printed = in_process(first, devices=4).stdout
    calls = [line.split(" calls, ")[0] for line in printed.splitlines()]
    assert calls == ["1", "4", "4"]
    assert printed.count("True") == 3
    assert [line.count("'data'") for line in printed.splitlines()] == [0, 1, 1]
    assert in_process(second, devices=4).stdout == "True\n"


ORDERED = """
import jax, jax.experimental, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
import jupyter_jaxcb as jaxcb

def show(x):
    pass

mesh = jax.make_mesh((4,), ("data",))
x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("data")))
for call in (
    jaxcb.debug(show, ordered=True),
    lambda x: jaxcb.debug_print("{}", x, ordered=True),
    lambda x: jaxcb.debug_callback(show, x, ordered=True),
    lambda x: jax.debug.print("{}", x, ordered=True),
    jaxcb.io(show, result=None, ordered=True),
    jaxcb.tap(show),
):
    try:
        jax.jit(call)(x)
        jax.effects_barrier()
        print("called")
    except ValueError as error:
        print(f"ValueError: {error}")
"""


@pytest.mark.long
def test_ordered_calls_raise_the_quoted_error_for_debug_callbacks_alone(in_process):
    text = (REPOSITORY / "docs/guide/several-devices.md").read_text("utf-8")
    (quoted,) = re.findall(r"^```text\n(ValueError: .*: \[)", text, re.MULTILINE)
    printed = in_process(ORDERED, devices=4).stdout.splitlines()
    assert [line.startswith(quoted) for line in printed[:4]] == [True] * 4
    assert printed[4:] == ["called"] * 2
