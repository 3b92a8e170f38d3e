"""Checks of `course_lib.data`."""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from numbers import Integral

import torch
from torch import Tensor

from course_lib.validation import require_tensor, require_whole, short_name

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def tokens_of_vocabulary(tokens):
    """Tokens are strings, each once. Called in the constructor, which takes any iterable, once it is a tuple."""
    for token in tokens:
        if not isinstance(token, str):
            raise ValueError(f"tokens holds {token!r}, a {type(token).__name__}; use strings")
    for token, count in Counter(tokens).items():
        if count > 1:
            raise ValueError(f"tokens holds {token!r} more than once")


def encode(self, sequence, *, bos=False, eos=False):
    """There is at least one token, and all are in the vocabulary."""
    if not isinstance(sequence, Sequence):
        raise ValueError(
            f"sequence is a {type(sequence).__name__}; it must be a string or a list of tokens"
        )
    if len(sequence) == 0:
        raise ValueError("the text is empty; it needs at least one token")
    for position, token in enumerate(sequence):
        if not isinstance(token, str) or token not in self:
            raise ValueError(
                f"{token!r} at position {position} of {_shortened(sequence)} is not among the "
                f"{len(self)} tokens of the vocabulary"
            )


def decode(self, ids):
    """Ids up to the first end token are whole numbers that the vocabulary has."""
    for number in ids.tolist() if isinstance(ids, Tensor) else ids:
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise ValueError(
                f"ids holds {number!r}, a {type(number).__name__}; it must be whole numbers of "
                f"shape (length,)"
            )
        if not 0 <= number < len(self):
            raise ValueError(f"ids holds {number}; the vocabulary goes from 0 to {len(self) - 1}")
        if number == self.eos_id:
            break


def _shortened(sequence, most=40):
    return repr(sequence) if len(sequence) <= most else f"{sequence[:most]!r}…"


def pad(sequences, pad_id=0):
    """There is at least one sequence; each is a tensor of whole numbers with one axis."""
    _require_sequences(pad_id, sequences=sequences)


def pair_batches_init(self, sources, targets, batch_size, *, pad_id=0, seed=0):
    """Sources and targets are as many, and enough for one batch."""
    require_whole(batch_size=batch_size)
    require_whole(0, seed=seed)
    for name, sequences in (("sources", sources), ("targets", targets)):
        if not isinstance(sequences, Sequence):
            raise ValueError(
                f"{name} is a {type(sequences).__name__}; it must be a list of tensors"
            )
    if len(sources) != len(targets):
        raise ValueError(
            f"sources has {len(sources)} sequences but targets has {len(targets)}; "
            f"they belong together pair by pair"
        )
    if len(sources) < batch_size:
        raise ValueError(
            f"batch_size={batch_size} is more than the {len(sources)} pairs in sources and targets"
        )
    _require_sequences(pad_id, sources=sources, targets=targets)


def _require_sequences(pad_id, **several):
    require_whole(-(2**63), pad_id=pad_id)
    for name, sequences in several.items():
        if not isinstance(sequences, Sequence):
            raise ValueError(
                f"{name} is a {type(sequences).__name__}; it must be a list of tensors"
            )
        if len(sequences) == 0:
            raise ValueError(f"{name} is empty; a batch needs at least one sequence")
        for index, sequence in enumerate(sequences):
            _require_token_ids(f"{name}[{index}]", sequence, pad_id)


def _require_token_ids(name, sequence, pad_id):
    if not isinstance(sequence, Tensor) or sequence.dim() != 1 or sequence.dtype not in _WHOLE:
        given = f"is a {type(sequence).__name__}"
        if isinstance(sequence, Tensor):
            given = f"has shape {tuple(sequence.shape)} and dtype {short_name(sequence.dtype)}"
        raise ValueError(f"{name} {given}; it must be a tensor of whole numbers of shape (length,)")
    bounds = torch.iinfo(sequence.dtype)
    if not bounds.min <= pad_id <= bounds.max:
        raise ValueError(
            f"pad_id={pad_id} does not fit into {name}, of {short_name(sequence.dtype)}; "
            f"e.g. {name}.long()"
        )


def docstring_text(packages=("numpy",)):
    """A tuple of names of installed packages."""
    if not isinstance(packages, tuple) or not packages:
        raise ValueError(f"packages={packages!r} must be a tuple of names, e.g. ('numpy',)")
    for name in packages:
        if not isinstance(name, str) or not name.isidentifier() or find_spec(name) is None:
            raise ValueError(f"packages holds {name!r}, which is not an installed package")
        if find_spec(name).submodule_search_locations is None:
            raise ValueError(f"packages holds {name!r}, a single module; a package is a folder")


def text_windows(text, length, *, seed=None):
    """One axis of bytes, long enough for a window."""
    require_tensor(text=text)
    if text.dim() != 1 or text.dtype != torch.uint8:
        raise ValueError(
            f"text has shape {tuple(text.shape)} and dtype {short_name(text.dtype)}; it must be bytes "
            f"(uint8) of shape (byte,)"
        )
    require_whole(length=length)
    if seed is not None:
        require_whole(0, seed=seed)
    if len(text) <= length:
        raise ValueError(
            f"text has {len(text)} bytes; a window of length={length} needs {length + 1}"
        )
