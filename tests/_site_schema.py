"""The JSON Schema of a call site, which the package has for the tests of both languages."""

import functools
import json
from pathlib import Path

import jupyter_jaxcb

PLACE = Path(jupyter_jaxcb.__file__).parent / "report" / "frontend" / "view.schema.json"


def check_site(site):
    """Raise jsonschema.ValidationError if a front end would refuse the JSON of a site."""
    _validator().validate(site)


def check_beside(kind, data):
    """Raise jsonschema.ValidationError if `data` is not a `kind` of the schema, as ProgressView."""
    whole = _validator()
    whole.evolve(schema=whole.schema["$defs"][kind]).validate(data)


@functools.cache
def _validator():
    import jsonschema  # takes long, and every worker imports this file

    return jsonschema.Draft202012Validator(json.loads(PLACE.read_text(encoding="utf-8")))
