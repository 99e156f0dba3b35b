"""A warning names the calls of JAX's own callbacks whose results lose mesh axes."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def found(in_process):
    return in_process(Path(__file__).with_name("not_varying.py"), devices=4).value


@pytest.mark.parametrize("flavor", ["pure", "io", "buffer"])
def test_observed_call_whose_result_loses_axes_is_named(found, flavor):
    ((_, text),) = found[flavor]
    assert text.startswith(f"the jax {flavor} callback ")
    assert "vary over the mesh axes 'a', 'b', but" in text


def test_warning_is_at_the_line_of_the_call_and_names_the_cast(found):
    ((line, text),) = found["one axis"]
    assert line == found["line"]
    assert "vary over the mesh axis 'b', but" in text
    assert """jax.lax.pcast(result, ('b',), to="varying")""" in text


@pytest.mark.parametrize("program", ["cast", "cast, without jit"])
def test_call_whose_result_is_cast_causes_no_warning(found, program):
    assert found[program] == []


def test_call_whose_result_is_also_used_without_a_cast_is_named(found):
    assert len(found["cast_and_not"]) == 1


@pytest.mark.parametrize("program", ["no axis", "not checked", "debug", "ours"])
def test_call_that_loses_nothing_causes_no_warning(found, program):
    assert found[program] == []
