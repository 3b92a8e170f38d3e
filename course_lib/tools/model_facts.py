"""Read the facts of `course_lib.topics.anatomy` from the configuration classes of the installed `transformers`.

    .venv/bin/python -m course_lib.tools.model_facts

writes `course_lib/topics/anatomy/facts.json`; a test compares it, and says what a newer version has changed.
"""

import json
from importlib import import_module

from course_lib.topics.anatomy.models import CATALOGUE, Entry
from course_lib.topics.anatomy.stored import FACTS, LEFT_OUT


def configuration(entry: Entry) -> object:
    """Return the configuration of a model as `transformers` makes it."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING[entry.model_type](**entry.published)


def facts() -> dict:
    """Return the configuration of every model in the catalogue, and the version that they are of."""
    transformers = import_module("transformers")
    models = {}
    for name, entry in CATALOGUE.items():
        config = configuration(entry)
        kept = {k: v for k, v in config.to_dict().items() if v is not None and k not in LEFT_OUT}
        models[name] = {"class": type(config).__name__, "config": dict(sorted(kept.items()))}
    return {"transformers": transformers.__version__, "models": json.loads(json.dumps(models))}


def main() -> None:
    """Write the file."""
    lines = [
        json.dumps({"transformers": (found := facts())["transformers"]})[:-1] + ', "models": {'
    ]
    rows = [f"{json.dumps(name)}: {json.dumps(model)}" for name, model in found["models"].items()]
    FACTS.write_text("\n".join([*lines, ",\n".join(rows), "}}"]) + "\n", encoding="utf-8")
    print(f"{FACTS.name}: {len(rows)} models of transformers {found['transformers']}")


if __name__ == "__main__":
    main()
