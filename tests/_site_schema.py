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


def complete(site):
    """Return the JSON of a saved site with the defaults that it leaves out."""
    schema = json.loads(PLACE.read_text(encoding="utf-8"))
    facts = _defaults(schema, measured="cell_line" in site) | site
    variant = _defaults(schema["$defs"]["VariantView"])
    return facts | (
        {"shapes": [variant | one for one in site["shapes"]]} if "shapes" in site else {}
    )


def _defaults(schema, *, measured=True):
    """Return the defaults of the facts or, for metadata, of the measurements too."""
    return {
        name: one["default"]
        for name, one in schema["properties"].items()
        if "default" in one and (measured or "measured" not in one)
    }


@functools.cache
def _validator():
    import jsonschema  # takes long, and every worker imports this file

    return jsonschema.Draft202012Validator(json.loads(PLACE.read_text(encoding="utf-8")))
