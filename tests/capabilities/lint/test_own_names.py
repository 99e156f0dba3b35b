"""Writes to local objects and to caches of an object, and calls of helpers: what is allowed."""

import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


class Table:
    """Cache looked-up values, and count in another method."""

    def __init__(self):
        self.kept = {}
        self.looked = 0
        self.last = None

    def __call__(self, x):
        key = x.tobytes()
        if key not in self.kept:
            self.kept[key] = np.sin(x)
        self.last = key
        return self.kept[key]

    def counts(self, x):
        self.looked += 1
        return x


def test_object_may_cache_results_but_not_count():
    table = Table()
    jaxcb.pure(table, result="x")  # a warning would be an error
    with pytest.warns(jaxcb.ImpureFunctionWarning, match=r"outer state \(self.looked,"):
        jaxcb.pure(table.counts, result="x")


def splits_a_text(x, mode):
    left, *_ = mode.partition(":")
    mode += "_done"
    return x if left else -x


def adds_to_a_number(x, times: int):
    times += 1
    return x * times


def uses_local_lists(x, tree):
    import numpy as nm

    found = []
    found.append(x)
    tree["all"].append(x)
    nm.add(x, 1)

    def inner(y):
        found.append(y)
        return y

    inner.last = 3
    return inner(found[0])


def calls_itself():
    def fall(x):
        return x if x < 1 else fall(x - 1)

    return fall


@pytest.mark.parametrize(
    "function", [splits_a_text, adds_to_a_number, uses_local_lists, calls_itself()]
)
def test_local_objects_may_be_modified(function):
    jaxcb.pure(function, result="x")  # a warning would be an error


def test_helper_that_is_a_callback_too_is_reported_with_advice():
    @jaxcb.pure(result="x")
    def slope(x):
        return -x

    def solve(x):
        return x + slope(x)

    with pytest.warns(jaxcb.JaxInHostFunctionWarning, match="pure callback solve calls slope") as w:
        jaxcb.pure(solve, result="x")
    (warning,) = w
    assert "%%jax_callback pure solve" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, solve.__code__.co_firstlineno + 1)


def test_wrapped_python_function_of_a_callback_may_be_called():
    @jaxcb.pure(result="x")
    def slope(x):
        return -x

    solve = jaxcb.pure(lambda x: x + slope.__wrapped__(x), result="x")
    assert solve(np.float32(3)) == 0
