"""Running a cell again frees the programs and functions of its earlier runs."""

import pytest

SETUP = """
import gc, weakref, jupyter_jaxcb as jaxcb
class Large: pass
large = []
def alive():
    for _ in range(4): gc.collect()
    programs = len(jax.devices()[0].client.live_executables())
    return programs, sum(one() is not None for one in large)
"""
MAKE = "one = Large(); large.append(weakref.ref(one));"
HOST = f"{MAKE}\n@jaxcb.io(result='x')\ndef h(x, one=one): return x\nf = jax.jit(lambda x: h(x))\n"
JAX_CALLBACK = (
    "def h(x, one=one): return np.float32(x)\nS = jax.ShapeDtypeStruct((), np.float32)\n"
    "jax.jit(lambda x: jax.pure_callback(h, S, x))(1.0);"
)
CELLS = {
    "decorator": [f"{HOST}f(1.0);"],
    "magic": [
        MAKE,
        "%%jax_callback pure --result x\ndef h(x, one=one): return x",
        "jax.jit(lambda x: h(x))(1.0);",
    ],
    "explain": [HOST, "%jax_explain f(1.0)", "%jax_explain --matrix f(1.0)"],
    "JAX's callbacks": [MAKE, f"%%jax_record --jax\n{JAX_CALLBACK}"],
}


@pytest.mark.long
@pytest.mark.parametrize(("kind", "has_id"), [*((kind, True) for kind in CELLS), ("magic", False)])
def test_cells_that_run_again_leave_nothing_behind(kernel, kind, has_id):
    def run(times):
        for _ in range(times):
            for number, cell in enumerate(CELLS[kind]):
                assert kernel.run(cell, cell=str(number) if has_id else None).error is None
        return kernel.run("alive()").value

    kernel.run(SETUP)
    assert run(2) == run(3)
