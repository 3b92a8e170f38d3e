"""The anatomy of a model: what its configuration makes, and what follows for memory and compute."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from course_lib.topics.anatomy.models import CATALOGUE
from course_lib.topics.anatomy.reading import FAMILIES, UNCOUNTED, Layer
from course_lib.topics.anatomy.stored import LEFT_OUT, stored
from course_lib.validation import require_one_of


@dataclass(frozen=True)
class Anatomy:
    """The layers of a model and the numbers that follow from them.

    Attributes:
        name: of the model, or its `model_type`.
        config: its configuration.
        layers: from the first to the last.
        embedding, lm_head: parameters of the token embeddings, and of the output layer; 0 where it shares their matrix.
        rest: of all else outside the layers.
        looked_up: of those in `rest`, the ones in tables from which a token reads a row: learned positions, embeddings per layer.
        source: where the configuration is from.
    """

    name: str
    config: Mapping
    layers: tuple[Layer, ...]
    embedding: int
    lm_head: int
    rest: int
    looked_up: int = 0
    source: str = "handed in"

    @property
    def parameters(self) -> int:
        """All parameters, without the vision part and without layers that only predict further tokens in training."""
        return self._outside + sum(layer.parameters for layer in self.layers)

    @property
    def active(self) -> int:
        """The parameters that one token is multiplied with or added to: without the experts that it does not go to, and
        without tables of which it only reads a row. The token embeddings count where they are the output layer, too.

        Model cards count in several ways: gpt-oss-120b's 5.13 billion is this one; others leave the output layer out, or
        count all embeddings."""
        tables = self.looked_up + (self.embedding if self.lm_head else 0)
        return self._outside - tables + sum(layer.active for layer in self.layers)

    @property
    def _outside(self) -> int:
        return self.embedding + self.lm_head + self.rest

    def cache_bytes(self, length: int, size: int = 2) -> int:
        """Return the bytes that generation keeps after `length` tokens, of numbers of `size` bytes.

        Entries of tokens, states, and keys of indexers; states of the delta rule are in float32 whatever the size.
        """
        return sum(layer.mixer.cache_bytes(length, size) for layer in self.layers)

    def flops_per_token(self, length: int) -> int:
        """Return the FLOPs of the matrix products of one token that may look at `length` tokens, itself included.

        Two per active parameter of a matrix, and what looking at the tokens costs; embeddings are looked up. Left out is what
        mixes the streams of hyper-connections (0.3 % in DeepSeek-V4-Flash).
        """
        networks = sum(2 * layer.network.matrices for layer in self.layers)
        head = 2 * (self.lm_head or self.embedding)
        return networks + head + sum(layer.mixer.flops(length) for layer in self.layers)

    @property
    def kinds(self) -> dict[str, int]:
        """How many layers there are of each kind of mixer."""
        return dict(Counter(layer.mixer.kind for layer in self.layers))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        return f"{self.name}: {len(self.layers)} layers ({kinds}), {self.parameters:,} parameters, {self.active:,} active"


def model_names() -> list[str]:
    """Return the names of the models whose facts are stored, from the oldest to the newest."""
    return list(CATALOGUE)


def anatomy(model: str | Path | Mapping | object, *, family: str | None = None) -> Anatomy:
    """Return the anatomy of a model.

    Args:
        model: a name of `model_names()`; a folder with a `config.json`, or such a file; a configuration as a mapping; or one
            of `transformers`. With `transformers` installed, what a mapping leaves out has the defaults of its class.
        family: the `model_type` by whose rules a configuration of an unknown one is read; what it has beside that
            family is not counted.

    Raises:
        ValueError: for a name that is not stored, a configuration of a family that nothing here reads (the message names
            the nearest family and what it would not count), or one with biases that are not counted.
    """
    if isinstance(model, str) and model in CATALOGUE:
        made = _made(model, stored()["models"][model]["config"], family)
        return replace(made, source=CATALOGUE[model].source)
    if isinstance(model, str | Path):
        path = Path(model)
        path = path / "config.json" if path.is_dir() else path
        if not path.is_file():
            require_one_of(CATALOGUE, model=str(model))
        return anatomy(json.loads(path.read_text(encoding="utf-8")), family=family)
    if isinstance(model, Mapping):
        config = _completed(dict(model))
    elif hasattr(model, "to_dict"):
        config = getattr(model, "get_text_config", lambda: model)().to_dict()
    else:
        raise ValueError(
            f"model is a {type(model).__name__}; it must be a name, a path, a mapping or a configuration"
        )
    return _made(config.get("model_type", "a model"), config, family)


def _made(name: str, config: Mapping, family: str | None = None) -> Anatomy:
    kind = config.get("model_type", "(none)")
    if family is None and kind not in FAMILIES and (nearest := _nearest(config)):
        raise ValueError(nearest)
    require_one_of(FAMILIES, **({"model_type": kind} if family is None else {"family": family}))
    for flag in UNCOUNTED.get(family or kind, ()):
        if config.get(flag):
            raise ValueError(
                f"{flag}={config[flag]} adds parameters that are not counted in {family or kind}"
            )
    try:
        parts = FAMILIES[family or kind](config)
    except KeyError as missing:
        raise ValueError(
            f"the configuration has no {missing}, which {family or kind} is read by; with transformers installed, what "
            f"a configuration of a known model_type leaves out comes from its class"
        ) from None
    source = "handed in" if family is None else f"handed in, read as {family}"
    layers = tuple(parts.layers)
    return Anatomy(name, config, layers, *parts[1:], source)


def _nearest(config: Mapping) -> str | None:
    """Say which family has most names in common with a configuration, and which names it does not have."""
    names = {name for name, value in config.items() if value is not None} - {
        *LEFT_OUT,
        "model_type",
    }
    known = {one["config"]["model_type"]: set(one["config"]) for one in stored()["models"].values()}
    shared = {kind: len(names & its) / len(names | its) for kind, its in known.items()}
    nearest = max(shared, key=shared.get)
    common = names & known[nearest]
    if len(common) < 8:
        return None
    more = ", ".join(sorted(names - known[nearest])) or "nothing by its name"
    return (
        f"model_type={config.get('model_type', '(none)')!r} is unknown. The nearest is family={nearest!r}, with {len(common)} of "
        f"{len(names)} names in common: anatomy(config, family={nearest!r}) reads it so, and may not count what these "
        f"decide: {more}. By hand: add up what each layer retains, by what it hands to the cache (update_…, store_…) and what the cache class drops (lesson 15)."
    )


def _completed(config: dict) -> Mapping:
    """Fill in what a configuration leaves out, by its class, and take the part of the text; as it is without the package."""
    try:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING as classes
    except ImportError:
        classes = {}
    kind = config.get("model_type")
    if kind in classes:
        made = classes[kind](**{k: v for k, v in config.items() if k != "model_type"})
        return made.get_text_config().to_dict()
    return _completed(dict(config["text_config"])) if config.get("text_config") else config
