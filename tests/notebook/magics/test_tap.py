"""%%jax_callback tap registers functions that see a value, which the program passes on."""


def test_tap_returns_its_argument_and_gets_the_whole_batch(kernel):
    kernel.run(
        "%%jax_callback tap\n"
        "def look(x, transforms):\n"
        "    print(x, transforms)\n"
        "def alone(x):\n"
        "    print('alone', x)"
    )
    ran = kernel.run("jax.vmap(lambda x: alone(look(x)) * 2)(jnp.arange(3)).tolist()")
    assert ran.value == "[0, 2, 4]"
    assert ran.text == "[0 1 2] (('batch', {'batch_dims': (0,)}),)\nalone [0 1 2]\n"
    assert [(s["function"], s["flavor"], s["calls"]) for s in ran.sites] == [
        ("alone", "tap", 1),
        ("look", "tap", 1),
    ]
    assert ran.sites[0]["shapes"][0]["levels"] == [[3, "whole batch", [True]]]


def test_compiled_programs_call_the_new_body(kernel):
    kernel.run("%%jax_callback tap\ndef look(x): print('old', x)", cell="a")
    kernel.run("f = jax.jit(lambda x: look(x) + 1)\nf(1.0)")
    kernel.run("%%jax_callback tap\ndef look(x): print('new', x)", cell="a")
    assert kernel.run("float(f(1.0))").text == "new 1.0\n"


def test_failed_tap_is_shown_in_the_host_trace(kernel):
    kernel.run("%%jax_callback tap\ndef boom(x): raise ValueError('no luck')")
    ran = kernel.run("float(jax.jit(boom)(1.0))")
    assert (ran.value, ran.error) == ("1.0", None)
    assert ran.sites[0]["errors"] == ["ValueError: no luck"]


def test_error_of_a_tap_raised_by_the_barrier_is_shown_once_as_the_users_exception(kernel):
    kernel.run("%%jax_callback tap\ndef boom(x): raise ValueError('no luck')")
    ran = kernel.run(
        "from jupyter_jaxcb import host_callback as hcb\nfloat(boom(1.0))\nhcb.barrier_wait()"
    )
    name, text, traceback = ran.error
    assert (name, text) == ("ValueError", "no luck")
    assert traceback.count("ValueError: no luck") == 1
    assert "barrier_wait, which raises CallbackException" in traceback
    assert "jupyter_jaxcb/" not in traceback + ran.text


def test_id_print_and_call_run_in_a_cell(kernel):
    ran = kernel.run(
        "from jupyter_jaxcb import host_callback as hcb\n"
        "def f(x):\n"
        "    x = hcb.id_print(x, what='x')\n"
        "    return hcb.call(np.sin, x, result_shape=x)\n"
        "float(jax.jit(f)(0.0))"
    )
    assert (ran.value, ran.text) == ("0.0", "what: x\n0.\n")
    assert [(s["function"], s["line"]) for s in ran.sites] == [("id_print", 3), ("sin", 4)]
