"""``--linear`` with ``--transpose`` and ``--residual``: the derivative of a solver in a cell."""

SOLVE = """
def solve(a, b):
    return np.linalg.solve(a, b)

def solve_transposed(a, ct):
    return np.linalg.solve(a.T, ct)

def residual(a, x, b):
    return a @ x - b
"""
LINE = "%%jax_callback pure --result b --linear b --transpose solve_transposed"


def test_functions_of_the_cell_are_transpose_and_residual_of_its_callback(kernel):
    kernel.run(f"{LINE} --residual residual\n{SOLVE}")
    found = kernel.run(
        "gradient = jax.grad(lambda a, b: solve(a, b).sum(), (0, 1))\n"
        "[x.tolist() for x in gradient(jnp.array([[2.0, 0], [0, 4]]), jnp.array([1.0, 2]))]"
    )
    assert found.value == "[[[-0.25, -0.25], [-0.125, -0.125]], [0.5, 0.25]]"
