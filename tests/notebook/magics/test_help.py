"""The help of a magic, ``%%jax_callback?``."""

import re

import pytest

from jupyter_jaxcb.notebook.magics._callback import JaxMagics
from jupyter_jaxcb.notebook.magics._options import option_names
from jupyter_jaxcb.notebook.magics._record import RecordMagics
from jupyter_jaxcb.notebook.magics._watch import WatchMagics

MAGICS = {
    "%%jax_callback": JaxMagics.jax_callback,
    "%jax_callbacks": JaxMagics.jax_callbacks,
    "%jax_explain": JaxMagics.jax_explain,
    "%%jax_record": RecordMagics.jax_record,
    "%%jax_profile": RecordMagics.jax_profile,
    "%%jax_watch": WatchMagics.jax_watch,
}


@pytest.mark.parametrize("magic", MAGICS)
def test_help_has_an_example(magic):
    _, _, example = MAGICS[magic].__doc__.partition("Example:")
    assert example.lstrip().lstrip("`").startswith(f"{magic} ")


@pytest.mark.parametrize("magic", MAGICS)
def test_help_lists_every_option(magic):
    assert all(option in MAGICS[magic].__doc__ for option in option_names(MAGICS[magic]))


@pytest.mark.parametrize("magic", ["%%jax_callback", "%%jax_profile", "%%jax_watch"])
def test_help_shows_a_cell_magic_with_two_percent_signs(magic):
    text = MAGICS[magic].__doc__
    assert f"{magic} [--" in text
    assert text.count(magic[1:]) == text.count(magic)


@pytest.mark.parametrize("magic", MAGICS)
def test_error_of_a_wrong_option_names_a_help_that_there_is(kernel, magic):
    said = kernel.run(f"{magic} --bogus\nx").text
    named = re.search(r"See (\S+)\? for its options", said)
    hint = named[1] if named else magic  # %jax_explain has no parser of options
    assert hint.lstrip("%") in magic
    found = kernel.run(f"get_ipython().object_inspect({hint!r})['found']").value
    assert (found, bool(named)) == ("True", magic != "%jax_explain")
