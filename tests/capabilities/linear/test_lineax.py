"""Linear callbacks as operators of lineax, and a callback as its solver."""

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

A = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
LOWER = np.tril(A)
B = jnp.array([1.0, 2, 3])
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def operator(matrix, *tags):
    matvec = jaxcb.pure(lambda x: matrix @ x, result="x", linear="x")
    matvec.deftranspose(lambda ct: matrix.T @ ct)
    return lx.FunctionLinearOperator(matvec, jax.eval_shape(lambda: B), *tags)


def by_cg(b):
    solver = lx.CG(rtol=1e-6, atol=1e-6)
    return lx.linear_solve(operator(A, lx.positive_semidefinite_tag), b, solver).value


def by_gmres(b):
    return lx.linear_solve(operator(LOWER), b, lx.GMRES(rtol=1e-6, atol=1e-6)).value


@pytest.mark.parametrize(("solve", "matrix"), [(by_cg, A), (by_gmres, LOWER)])
def test_iterative_solver_of_lineax_accepts_a_linear_callback(solve, matrix):
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(jax.jit(solve)(B), inverse @ B, **CLOSE)
    np.testing.assert_allclose(jax.jacfwd(solve)(B), inverse, **CLOSE)
    np.testing.assert_allclose(jax.jacrev(solve)(B), inverse, **CLOSE)
    np.testing.assert_allclose(jax.vmap(solve, out_axes=1)(jnp.eye(3)), inverse, **CLOSE)


def test_operator_of_lineax_has_the_transpose_of_the_callback():
    transposed = operator(LOWER).transpose()
    np.testing.assert_allclose(transposed.as_matrix(), LOWER.T)
    np.testing.assert_allclose(transposed.transpose().as_matrix(), LOWER)


class External(lx.AbstractLinearSolver):
    """Calls NumPy's solver on the host."""

    def init(self, operator, options):
        return operator.as_matrix()

    def compute(self, matrix, b, options):
        return jaxcb.pure(np.linalg.solve, result="b")(matrix, b), lx.RESULTS.successful, {}

    def transpose(self, matrix, options):
        return matrix.T, options

    def conj(self, matrix, options):
        return matrix.conj(), options

    def assume_full_rank(self):
        return True


@pytest.mark.parametrize("transform", [jax.jacfwd, jax.jacrev])
def test_callback_is_a_solver_of_lineax_with_derivatives_of_second_order(transform):
    def squares(solve):
        return lambda a, b: (solve(a, b) ** 2).sum()

    def external(a, b):
        return lx.linear_solve(lx.MatrixLinearOperator(a), b, External()).value

    found = jax.jit(transform(jax.grad(squares(external), (0, 1)), (0, 1)))(LOWER, B)
    expected = transform(jax.grad(squares(jnp.linalg.solve), (0, 1)), (0, 1))(jnp.array(LOWER), B)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **CLOSE), found, expected)
