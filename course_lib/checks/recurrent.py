"""Checks of `course_lib.recurrent`."""

from torch import nn

from course_lib.validation import (
    require_alike,
    require_axes,
    require_bool,
    require_floating,
    require_next_token,
    require_one_of,
    require_same_batch,
    require_size,
    require_tokens,
    require_whole,
)


def cell_init(self, input_size, hidden_size):
    """Sizes are whole numbers above 0."""
    require_whole(input_size=input_size, hidden_size=hidden_size)


def cell_forward(self, input, state):
    """Input and hidden state have the dimensions that the cell was made for."""
    require_floating(input=input, state=state)
    require_axes(1, "(…, input_size)", input=input)
    require_axes(1, "(…, hidden_size)", state=state)
    require_alike(input=input, state=state)
    require_same_batch(input=input[..., None, :], state=state[..., None, :])
    input_size, hidden_size = self.W.in_features, self.U.in_features
    require_size(input_size, f"the cell was made with input_size={input_size}", input=input)
    require_size(hidden_size, f"the cell was made with hidden_size={hidden_size}", state=state)


def encoder_init(self, vocabulary_size, embedding_size, hidden_size, *, pad_id=0):
    """Sizes are whole numbers above 0, the padding token is one from 0."""
    require_whole(
        vocabulary_size=vocabulary_size, embedding_size=embedding_size, hidden_size=hidden_size
    )
    require_whole(0, pad_id=pad_id)


def encoder_forward(self, source):
    """Tokens are in the vocabulary; each sequence has one, and padding only after the last."""
    require_tokens(self.embedding.num_embeddings, source=source)
    padding = source == self.pad_id  # (batch, source)
    empty = padding.all(dim=1).nonzero()
    if len(empty):
        raise ValueError(f"source[{empty[0].item()}] is all padding; a source needs a token")
    early = (padding[:, :-1] & ~padding[:, 1:]).any(dim=1).nonzero()
    if len(early):
        row = early[0].item()
        raise ValueError(
            f"source[{row}] = {source[row].tolist()} has padding before a token; "
            f"padding must be at the end"
        )


def readout_init(self, hidden_size, embedding_size, context_size, readout_size, vocabulary_size):
    """Sizes are whole numbers above 0."""
    require_whole(
        hidden_size=hidden_size,
        embedding_size=embedding_size,
        context_size=context_size,
        readout_size=readout_size,
        vocabulary_size=vocabulary_size,
    )


def decoder_init(self, vocabulary_size, embedding_size, hidden_size, memory_size, input_size):
    """Sizes are whole numbers above 0."""
    require_whole(
        vocabulary_size=vocabulary_size,
        embedding_size=embedding_size,
        hidden_size=hidden_size,
        memory_size=memory_size,
    )


def decoder_forward(self, target, encoded):
    """Tokens are in the vocabulary, one sequence per source; the memory has the decoder's dimension."""
    require_tokens(self.embedding.num_embeddings, target=target)
    if len(target) != len(encoded.memory):
        raise ValueError(
            f"target has {len(target)} sequences, but {len(encoded.memory)} sources were encoded; "
            f"they belong together pair by pair"
        )
    made = f"the decoder was made with memory_size={self.memory_size}"
    require_size(self.memory_size, made, memory=encoded.memory)


def fixed_context_init(
    self, vocabulary_size, embedding_size, hidden_size, memory_size, readout_size=32
):
    """Sizes are whole numbers above 0."""
    decoder_init(self, vocabulary_size, embedding_size, hidden_size, memory_size, None)
    require_whole(readout_size=readout_size)


def bahdanau_init(
    self,
    vocabulary_size,
    embedding_size,
    hidden_size,
    memory_size,
    score_size=None,
    readout_size=32,
):
    """Sizes are whole numbers above 0; the memory has two halves."""
    decoder_init(self, vocabulary_size, embedding_size, hidden_size, memory_size, None)
    require_whole(2, memory_size=memory_size)
    if score_size is not None:
        require_whole(score_size=score_size)
    require_whole(readout_size=readout_size)


def luong_init(
    self,
    vocabulary_size,
    embedding_size,
    hidden_size,
    memory_size,
    score="general",
    *,
    input_feeding=False,
):
    """Sizes are whole numbers above 0; "dot" needs two that are equal."""
    decoder_init(self, vocabulary_size, embedding_size, hidden_size, memory_size, None)
    require_one_of(("dot", "general", "concat"), score=score)
    require_bool(input_feeding=input_feeding)
    if score == "dot" and hidden_size != memory_size:
        raise ValueError(
            f'score="dot" compares states as they are, so hidden_size={hidden_size} must equal '
            f'memory_size={memory_size}; score="general" takes any sizes'
        )


def seq2seq_init(self, encoder, decoder, *, bos_id=1, eos_id=2, pad_id=0):
    """Encoder and decoder have one `memory_size`; special tokens are in the decoder's vocabulary."""
    for name, part, needed in (
        ("encoder", encoder, "GRUEncoder"),
        ("decoder", decoder, "BahdanauDecoder"),
    ):
        if not isinstance(part, nn.Module) or not hasattr(part, "memory_size"):
            raise ValueError(
                f"{name} is a {type(part).__name__}; it must be a module with a memory_size, such as a {needed}"
            )
    if encoder.memory_size != decoder.memory_size:
        raise ValueError(
            f"encoder has memory_size={encoder.memory_size}, but decoder was made with "
            f"memory_size={decoder.memory_size}; they must be equal"
        )
    special = {"bos_id": bos_id, "eos_id": eos_id, "pad_id": pad_id}
    require_whole(0, **special)
    size = decoder.embedding.num_embeddings
    for name, token in special.items():
        if token >= size:
            raise ValueError(
                f"{name}={token}, but the decoder's vocabulary has {size} tokens, 0 to {size - 1}"
            )


def decode_step(self, token, state):
    """One token of the vocabulary per sequence, and the state that `prefill` returned."""
    if type(state).__name__ != "RecurrentState":
        raise ValueError(
            f"state is a {type(state).__name__}; it must be the state that prefill returned"
        )
    require_next_token(token, len(state.encoded.memory), self.vocabulary_size)


def generate(self, source, max_length=50):
    """At least one token is asked for."""
    require_whole(max_length=max_length)
