"""Runs the tests of the stack, and measures, on the accelerator that JAX finds: `make test-gpu`.

It needs JAX, NumPy, SciPy, numba, pytest and hypothesis, and nothing else: no network, no front
end, no installed package. `__main__.py` runs the groups of tests and prints the table, `plugin.py`
makes every machine as bare as that one, `figures.py` measures against JAX's own callbacks.
"""
