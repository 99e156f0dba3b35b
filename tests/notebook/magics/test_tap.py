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
    assert ran.sites[0]["shapes"][0]["methods"] == "whole batch"


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
