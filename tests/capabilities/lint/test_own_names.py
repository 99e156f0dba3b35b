"""Writes to local objects, and to caches of an object, are allowed."""

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
