"""Under jit over several devices, each device calls a partitioned callback with its own rows."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

FLAVORS = ("pure", "io")
NUMBERS = list(range(8))


def calls_of(shape, times=1):
    return [[n, f"cpu:{n}", shape] for n in range(4) for _ in range(times)]


@pytest.fixture(scope="module")
def found(in_process):
    return in_process(Path(__file__).with_name("partitioned.py"), devices=4).value


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize(
    ("program", "result", "shape", "times"),
    [
        ("jit", [2 * x for x in NUMBERS], [2], 1),
        ("eager", [2 * x for x in NUMBERS], [2], 1),
        ("on what XLA computed", [2 * x for x in NUMBERS], [2], 1),
        ("scan", [4 * x for x in NUMBERS], [2], 2),
        ("vmap", [[4 * x, 4 * x + 2] for x in NUMBERS], [2], 2),
        ("shard_map", [2 * x for x in NUMBERS], [2], 1),
        ("mask", [2 * x for x in NUMBERS], [2], 1),
        ("threads", [2 * x for x in NUMBERS], [2], 1),
    ],
)
def test_each_device_calls_with_its_rows_and_keeps_those_of_the_result(
    found, flavor, program, result, shape, times
):
    row = found[f"{flavor}: {program}"]
    assert row["result"] == result
    assert row["calls"] == calls_of(shape, times)
    assert "'d'" in row["spec"]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_false_mask_makes_no_call(found, flavor):
    row = found[f"{flavor}: false mask"]
    assert (row["result"], row["calls"]) == (NUMBERS, [])


@pytest.mark.parametrize(("flavor", "times"), [("pure", 0), ("io", 1)])
def test_calls_whose_result_is_unused_are_made_for_io_alone(found, flavor, times):
    row = found[f"{flavor}: unused"]
    assert (row["result"], row["calls"]) == (NUMBERS, calls_of([2], times))


@pytest.mark.parametrize("flavor", FLAVORS)
def test_only_rows_are_divided(found, flavor):
    """Half of the rows are on two devices each; both call with them and all of their columns."""
    row = found[f"{flavor}: columns spread"]
    assert (row["result"], row["calls"]) == ([[2] * 4] * 8, calls_of([4, 4]))
    row = found[f"{flavor}: not spread"]
    assert (row["result"], row["calls"]) == ([2 * x for x in NUMBERS], calls_of([8]))


@pytest.mark.parametrize("given", ["x", ("x",)])
def test_arguments_that_are_not_named_are_passed_whole(found, given):
    row = found[f"named {given}"]
    assert row["result"] == [[3] * 4] * 8
    assert row["calls"] == [[n, f"cpu:{n}", [2, 3], [3, 4]] for n in range(4)]


def test_arguments_or_results_with_other_rows_are_refused(found):
    assert re.search(
        r"^ValueError: product@.* is partitioned, .* \(x \(8, 3\), w \(3, 4\)\) .* need one first "
        r"axis\. Pass partitioned='x', or",
        found["named True"]["error"],
    )
    assert "need one first axis. Drop partitioned=" in found["no rows"]["error"]


def test_number_is_passed_to_a_call_on_each_device(found):
    assert (found["numbers"]["result"], found["numbers"]["calls"]) == (6, calls_of([]))


def test_derivative_rule_calls_on_each_device(found):
    np.testing.assert_allclose(found["grad"]["result"], np.cos(np.arange(8.0)), rtol=1e-6)
    assert "'d'" in found["grad"]["spec"]


@pytest.mark.parametrize(("given", "shapes"), [("b", ([], [2])), ("w, b", ([2], [2]))])
def test_transpose_gets_the_rows_under_the_names_of_its_own_parameters(found, given, shapes):
    """It names the cotangent ct, which stands for b."""
    row = found[f"transpose, {given}"]
    assert row["result"] == [3 * x for x in NUMBERS]
    assert row["calls"] == [[n, f"cpu:{n}", *map(list, shapes)] for n in range(4)]


def test_transpose_to_an_argument_without_rows_is_one_call(found):
    row = found["transpose, w"]
    assert row["result"] == [28.0] * 3
    assert [call[2:] for call in row["calls"]] == [[[8], [8]]]


def test_error_of_a_shard_reaches_the_user(found):
    assert found["failing"]["error"] == "ValueError: no luck"


def test_type_of_the_result_is_spread_over_an_explicit_mesh(found):
    row = found["explicit"]
    assert (row["result"], row["calls"]) == ([3 * x for x in NUMBERS], calls_of([2]))
    assert "'d'" in row["spec"]


@pytest.mark.parametrize(
    ("program", "calls"), [("explicit, vmap", calls_of([], 8)), ("explicit, vmap, gathered", [])]
)
def test_result_of_vmap_over_the_spread_axis_of_an_explicit_mesh_can_be_used(found, program, calls):
    """The one is a loop of the program, the other of the host."""
    row = found[program]
    assert (row["result"], row["calls"]) == ([3 * x for x in NUMBERS], calls)
    assert "'d'" in row["spec"]


@pytest.mark.parametrize("program", ["explicit, mask", "explicit, mask, gathered"])
def test_mask_goes_with_an_explicit_mesh(found, program):
    assert found[program]["result"] == [2 * x for x in NUMBERS]


@pytest.mark.parametrize(
    "program", ["", ", mask", ", vmap", ", vmap, gathered", ", mask, gathered"]
)
def test_program_works_without_set_mesh_if_its_arrays_are_on_an_explicit_mesh(found, program):
    row = found[f"explicit{program}, mesh not set"]
    assert "error" not in row, row
    assert row["result"] == found[f"explicit{program}"]["result"]


@pytest.mark.parametrize(("program", "power"), [("grad", 1), ("loop", 4)])
@pytest.mark.parametrize("mesh", ["", ", mesh not set"])
def test_masked_result_has_the_type_of_otherwise_on_an_explicit_mesh(found, program, power, mesh):
    """JAX gives `jnp.where(mask, f(x), otherwise)` that type, and loops and derivatives need it."""
    row = found[f"explicit, mask, gathered, {program}{mesh}"]
    assert "error" not in row, row
    assert row["result"] == [2 * x if power == 1 else x**power for x in NUMBERS]


TABLE = np.arange(16.0, dtype=np.float32).reshape(4, 4) / 8
IN_TWO_AXES = {
    "grad, jvp": np.cos(TABLE),
    "grad, vjp": np.cos(TABLE),
    "grad, finite": np.cos(TABLE),
    "grad, norm": 2 * TABLE,
    "grad, linear": 2 * TABLE * TABLE,
    "grad, mask": np.where(TABLE.sum(1, keepdims=True) > 1, np.cos(TABLE), 1),
    "loop, sine": np.sin(np.sin(TABLE)),
    "loop, double": 4 * TABLE,
    "branch": np.sin(TABLE),
    "vmap of tables": np.sin(TABLE)[None],
}


@pytest.mark.parametrize("program", IN_TWO_AXES)
def test_results_have_the_type_of_an_argument_that_two_axes_of_an_explicit_mesh_divide(
    found, program
):
    """JAX refuses rules, carries and branches that return another type."""
    row = found[f"explicit in two axes: {program}"]
    assert "error" not in row, row
    np.testing.assert_allclose(row["result"], IN_TWO_AXES[program], rtol=1e-3, atol=1e-3)
    assert "'a', 'b'" in row["spec"]


def test_result_of_another_shape_is_divided_in_rows_alone(found):
    row = found["explicit in two axes: rows of two axes"]
    np.testing.assert_allclose(row["result"], (TABLE * TABLE).sum(1), rtol=1e-6)
    assert row["calls"] == calls_of([2, 4])
    assert "'a'" in row["spec"] and "'b'" not in row["spec"]


def test_recording_has_shard_and_device_of_each_call_and_nothing_is_gathered(found):
    facts, status, compiled = found["recorded"]
    assert facts == [[n, f"cpu:{n}", 0] for n in range(4)]
    assert (status, compiled) == ("kept", 4)


def test_summary_lists_the_shapes_of_the_calls_alone(found):
    """The whole arrays, with which no device calls, are not a variant."""
    assert found["summary, rows"] == [4, 4, [[4, [2, 4], 4]], []]


def test_summary_does_not_take_the_vmap_of_a_partitioned_callback_for_one_call(found):
    """It is a loop of the program; each device calls with each of the 8 rows."""
    calls, _, shapes, notes = found["summary, rows of a table, vmap"]
    assert (calls, shapes, notes) == (32, [[32, [4], 4]], [])


@pytest.mark.parametrize("flavor", ["debug", "io"])
@pytest.mark.parametrize(("batch", "shape", "calls"), [(False, [2, 3], 4), (True, [2], 12)])
def test_call_without_a_result_is_recorded_with_the_part_that_it_got(
    found, flavor, batch, shape, calls
):
    received, recorded, notes = found[f"without a result, {flavor}, {batch}"]
    assert received == [[shape, shape]] * calls
    assert (recorded, notes) == ([[calls, shape, shape]], [])


def test_on_one_device_there_is_one_call():
    double = jaxcb.pure(lambda x: 2 * x, result="x", partitioned=True)
    with jaxcb.record() as r:
        assert double(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert len(r.recording) == 1


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (jaxcb.pure, {"partitioned": 5}, "partitioned must be True or names of parameters"),
        (jaxcb.pure, {"partitioned": ""}, "but got ''. .* Leave it out for one call with all rows"),
        (jaxcb.io, {"partitioned": ()}, r"must be True or names of parameters, but got \(\)"),
        (jaxcb.pure, {"partitioned": "x,"}, "must be True or names of parameters, but got 'x,'"),
        (jaxcb.pure, {"partitioned": "y"}, "it has no parameter 'y'. Its parameters are x"),
        (jaxcb.io, {"partitioned": ("x", "xs")}, "it has no parameter 'xs'; did you mean 'x'"),
        (jaxcb.io, {"partitioned": True, "ordered": True}, "the devices call at the same time"),
        (jaxcb.pure, {"partitioned": True, "vmap_method": "expand_dims"}, "a part of the batch"),
    ],
)
def test_wrong_values_and_pairs_are_refused(make, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(lambda x: x, result="x", **options)


def test_names_need_a_result():
    log = jaxcb.io(lambda x: None, result=None, partitioned="x")
    with pytest.raises(ValueError, match="needs a result"):
        log(jnp.arange(3.0))
