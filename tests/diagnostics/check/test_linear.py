"""`check` of linear callbacks: linearity, the transpose, and the residual."""

import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

RNG = np.random.default_rng(0)
A = (np.eye(4) * 3 + RNG.normal(size=(4, 4))).astype(np.float32)
B = np.float32([1.0, -2.0, 0.5, 3.0])
C = (A + 1j * A[::-1]).astype(np.complex64)


def solve(a, b):
    return np.linalg.solve(a, b)


def linear(function=solve, transposed=None, residual=None, **options):
    made = jaxcb.pure(function, result="b", linear="b", **options)
    if transposed:
        made.deftranspose(transposed)
    if residual:
        made.defresidual(residual)
    return made


def words(callback, a=A, b=B):
    found = jaxcb.check(callback, a, b)
    assert {one.kind for one in found.findings} <= {"linear"}
    return " ".join(one.what for one in found.findings)


@pytest.mark.parametrize("a", [A, C], ids=["real", "complex"])
def test_right_solver_with_transpose_and_residual_has_no_finding(a):
    made = linear(solve, lambda a, ct: np.linalg.solve(a.T, ct), lambda a, x, b: a @ x - b)
    found = jaxcb.check(made, a, B.astype(a.dtype))
    assert found.ok
    assert {"linear", "derivative rule"} <= set(found.kept)


@pytest.mark.parametrize(
    ("transposed", "a", "what"),
    [
        (lambda a, ct: -np.linalg.solve(a.T, ct), A, "it has the wrong sign"),
        (lambda a, ct: np.linalg.solve(a.conj().T, ct), C, "a conjugate too many or too few"),
        (solve, A, "it is the function itself, not transposed"),
        (lambda a, ct: 2 * np.linalg.solve(a.T, ct), A, "sum(b * transposed(ct)) is"),
    ],
    ids=["sign", "conjugate", "itself", "factor"],
)
def test_wrong_transpose_is_named(transposed, a, what):
    assert what in words(linear(solve, transposed), a, B.astype(a.dtype))


@pytest.mark.parametrize(
    ("function", "b", "what"),
    [
        (lambda a, b: a @ b + 1, B, "f(0) is not zero, but 1"),
        (lambda a, b: b**2, B, "f(2 u + v) is not 2 f(u) + f(v)"),
        (lambda a, b: a @ b.conj(), B.astype(np.complex64), "for real factors alone"),
        (lambda a, b: np.where(abs(b) > 100, 0, b), B, "for arguments of size 1000"),
    ],
    ids=["affine", "square", "conjugate", "clipped"],
)
def test_function_that_is_not_linear_is_named_with_what_it_does_instead(function, b, what):
    assert what in words(linear(function, lambda a, ct: ct), A, b)


def test_self_adjoint_functions_are_compared_with_themselves():
    spd, hermitian = A @ A.T, C @ C.conj().T
    product = linear(lambda a, b: a @ b, linear_self_adjoint=True)
    assert jaxcb.check(product, spd, B).ok
    assert jaxcb.check(product, hermitian, B.astype(C.dtype)).ok
    assert "it is not its own adjoint" in words(product, A)
    assert "a conjugate too many" in words(product, (C + C.T), B.astype(C.dtype))


@pytest.mark.parametrize(
    ("residual", "what"),
    [
        (lambda a, x, b: b - a @ x, "the sign is wrong"),
        (lambda a, x, b: 2 * (a @ x) - b, "the residual gives"),
        (lambda a, x, b: a.T @ x - b, "the residual gives"),
    ],
    ids=["sign", "factor", "matrix"],
)
def test_wrong_residual_is_found_by_the_derivative_that_follows(residual, what):
    made = linear(solve, lambda a, ct: np.linalg.solve(a.T, ct), residual)
    (finding,) = jaxcb.check(made, A, B).findings
    assert finding.kind == "derivative rule"
    assert finding.what.startswith("by args[0], along ")
    assert what in finding.what
    assert "defresidual" in finding.advice


def test_linear_function_without_a_transpose_is_checked_for_linearity_alone():
    found = jaxcb.check(linear(), A, B)
    assert found.ok
    assert found.left_out["linear"] == "it has no transpose"


def test_function_that_fails_on_random_vectors_is_left_out_with_its_error():
    def picky(a, b):
        if abs(b).max() > 100:
            raise ValueError("too large")
        return a @ b

    found = jaxcb.check(linear(picky, lambda a, ct: a.T @ ct), A, B)
    assert found.ok and "ValueError: too large" in found.left_out["linear"]


def test_real_arguments_of_a_complex_linear_function_have_no_finding():
    real = jaxcb.pure(lambda b: (1 + 2j) * b, result="b.astype('complex64')", linear="b")
    real.deftranspose(lambda ct: ((1 + 2j) * ct).real)
    both = jaxcb.pure(lambda b, c: b + c, result="c", linear="b, c")
    both.deftranspose(lambda ct: (ct.real, ct))
    for found in (jaxcb.check(real, B), jaxcb.check(both, B, B.astype(np.complex64))):
        assert found.ok and "linear" in found.kept
