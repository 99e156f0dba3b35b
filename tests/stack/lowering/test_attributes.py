"""Custom calls have the attributes of those of JAX's callbacks, apart from a list of differences.

JAX lowers its own callbacks for a GPU only where there is one. So ours for a GPU are compared with
ours for the CPU, and these with JAX's. For a TPU, whole programs are compared, lowered with a
backend that is none.
"""

import re
from pathlib import Path

import pytest

KINDS = ("pure", "io", "io ordered", "debug", "debug ordered")
PROGRAMS = ("one device", "jit", "shard_map")
SHARD = {"operands", "operand_layouts"}  # the number of the shard is the first operand
PACKED = {"results"}  # the results and the number of the error, as bytes
PACKED_NOTHING = {"results", "result_layouts"}
CHECKS = {  # further calls: each device checks that the call was successful; the next one waits
    "jit: pure": 1, "jit: io": 1, "jit: io ordered": 2, "jit: debug": 1,
}  # fmt: skip
DIFFERENCES = {
    "jit: pure": PACKED,
    "jit: io": PACKED,
    "jit: io ordered": PACKED,
    "jit: debug": PACKED_NOTHING,
    "shard_map: pure": SHARD,
    "shard_map: io": SHARD,
    "shard_map: io ordered": SHARD,
    "shard_map: debug": SHARD,
}


@pytest.fixture(scope="module")
def found(in_process):
    return in_process(Path(__file__).with_name("attributes.py"), devices=4).value


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_attributes_are_those_of_jax_but_for_listed_differences(found, program, kind):
    key = f"{program}: {kind}"
    theirs, ours = found[key]["jax cpu"], found[key]["ours cpu"]
    if theirs is None:
        assert (ours, kind, program == "one device") == (None, "debug ordered", False)
        return
    (theirs,), (ours, *checks) = theirs, ours
    names = {*theirs, *ours}
    differing = {name for name in names if theirs.get(name) != ours.get(name)}
    has, wanted = (call.get("sdy.sharding", "").count("@maximal") for call in (theirs, ours))
    if "ordered" in kind and has < wanted:  # JAX places debug nowhere
        differing -= {"sdy.sharding"}
    assert differing == DIFFERENCES.get(key, set())
    assert len(checks) == CHECKS.get(key, 0)


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_attributes_for_a_gpu_are_those_for_the_cpu_but_for_the_target(
    found, program, kind, platform
):
    calls = found[f"{program}: {kind}"]
    on_cpu, on_gpu = calls["ours cpu"], calls[f"ours {platform}"]
    if on_cpu is None:
        assert on_gpu is None
        return
    assert {call["target"] for call in on_gpu} == {"xla_ffi_python_gpu_callback"}
    assert on_gpu == [call | {"target": "xla_ffi_python_gpu_callback"} for call in on_cpu]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_for_a_tpu_are_jaxs_but_for_the_device_of_ordered_debug_calls(
    found, program, kind
):
    theirs, ours = found[f"{program}: {kind}"]["jax tpu"], found[f"{program}: {kind}"]["ours tpu"]
    if kind == "debug ordered" and program == "one device":
        assert "@maximal" in ours
        ours = re.sub(r", sdy.sharding = .*?>\]>|  sdy.mesh @maximal.*\n", "", ours)
    assert ours == theirs
    assert (theirs is None) == (kind == "debug ordered" and program != "one device")
    assert theirs is None or "stablehlo.send" in theirs
