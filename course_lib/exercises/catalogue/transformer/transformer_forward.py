"""The forward pass of a Transformer."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import NamedFunction, trained_norm
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.masks import causal_mask


def transformer_forward(
    source, target, embed_source, encoder_layers, embed_target, decoder_layers, lm_head
):
    memory_mask = (source != 0)[:, None, :]  # (batch, 1, source)
    memory = embed_source(source)  # (batch, source, d_model)
    for layer in encoder_layers:
        memory = layer(memory, memory_mask)  # (batch, source, d_model)
    length = target.shape[1]
    mask = torch.ones(length, length, dtype=torch.bool).tril()  # (target, target)
    x = embed_target(target)  # (batch, target, d_model)
    for layer in decoder_layers:
        x = layer(x, memory, mask, memory_mask)  # (batch, target, d_model)
    return lm_head(x)  # (batch, target, vocabulary)


def _attend(W, x, keys, mask):
    return scaled_dot_product_attention(x @ W[0], keys @ W[1], keys, mask).output


def _encoder_layer(size, seed, name):
    """A post-norm encoder layer with random weights."""
    W = random_tensor(3, size, size, seed=seed)
    norms = [trained_norm(size, seed + 1 + number) for number in range(2)]

    def layer(x, mask):
        x = norms[0](x + _attend(W[:2], x, x, mask))
        return norms[1](x + torch.tanh(x @ W[2]))

    return NamedFunction(name, layer)


def _decoder_layer(size, seed, name):
    """A post-norm decoder layer with random weights."""
    W = random_tensor(5, size, size, seed=seed)
    norms = [trained_norm(size, seed + 1 + number) for number in range(3)]

    def layer(x, memory, mask, memory_mask):
        x = norms[0](x + _attend(W[:2], x, x, mask))
        x = norms[1](x + _attend(W[2:4], x, memory, memory_mask))
        return norms[2](x + torch.tanh(x @ W[4]))

    return NamedFunction(name, layer)


def _embedding(size, seed, name, vocabulary=7):
    table, positions = (random_tensor(n, size, seed=seed + n) for n in (vocabulary, 9))
    return NamedFunction(name, lambda tokens: table[tokens] + positions[: tokens.shape[1]])


def _parts(size, layers, seed, vocabulary=7):
    W = random_tensor(size, vocabulary, seed=seed + 1)
    return {
        "embed_source": _embedding(size, seed + 2, "the source embedding"),
        "encoder_layers": [
            _encoder_layer(size, seed + 10 * n, f"encoder layer {n}") for n in range(layers)
        ],
        "embed_target": _embedding(size, seed + 100, "the target embedding"),
        "decoder_layers": [
            _decoder_layer(size, seed + 110 + 10 * n, f"decoder layer {n}") for n in range(layers)
        ],
        "lm_head": NamedFunction("a linear layer", lambda x: x @ W),
    }


def reference(source, target, embed_source, encoder_layers, embed_target, decoder_layers, lm_head):
    padding = (source != 0).unsqueeze(1)
    memory, x = embed_source(source), embed_target(target)
    for layer in encoder_layers:
        memory = layer(memory, padding)
    for layer in decoder_layers:
        x = layer(x, memory, causal_mask(target.shape[1]), padding)
    return lm_head(x)


ENCODE = "memory = layer(memory, memory_mask)"
DECODE = "x = layer(x, memory, mask, memory_mask)"
TRIL = "torch.ones(length, length, dtype=torch.bool).tril()"
RETURN = "return lm_head(x)"
MISTAKES = f"""
{ENCODE} -> memory = layer(memory, None)
    The encoder has no mask: its positions attend to the padding of the source.
mask, memory_mask) -> mask, None)
    The cross-attention has no mask: it attends to the padding of the source.
{ENCODE} -> memory = layer(memory, None)
+ mask, memory_mask) -> mask, None)
    The padding of the source is not masked, neither in the encoder nor in cross-attention.
(source != 0) -> (source == 0)
    The padding mask is inverted: it is True where the source is padding. Here True = may attend.
(source != 0)[:, None, :] -> (source != 0)[:, :, None]
    Your padding mask is (batch, source, 1): it masks queries. Keys are the last axis: (batch, 1, source).
{ENCODE} -> n = source.shape[1]; memory = layer(memory, memory_mask & torch.ones(n, n, dtype=torch.bool).tril())
    The encoder has a causal mask. It knows the whole source, so each of its positions attends to all that are not
    padding.
memory, mask, memory_mask) -> memory, None, memory_mask)
    The decoder's self-attention has no mask, so each position attends to the tokens after it, its label among them.
.tril() -> .triu()
    The triangle is transposed: your positions attend to the future. .tril() keeps the past.
.tril() -> .triu(1)
    The causal mask is inverted, as nn.Transformer expects it. The layers here take True = may attend.
.tril() -> .tril(-1)
    The diagonal of the causal mask is masked, but a position may attend to itself.
.tril() -> .tril(1)
    Off by one: each position attends to the token after it, which is its label.
{TRIL} -> torch.eye(length, dtype=torch.bool)
    Each target position attends only to itself. It may attend to all positions before it too: .tril().
length = target.shape[1] -> length = source.shape[1]
    Your causal mask has the length of the source. It is for the decoder's self-attention, so both its axes are target
    positions.
memory, mask, memory_mask) -> memory, memory_mask, mask)
    The masks of the decoder are exchanged: layer(x, memory, mask, memory_mask). Where target and source have the same
    length, no error is raised.
mask, memory_mask) -> mask, mask)
    The cross-attention gets the causal mask. The whole source is known; only its padding is masked: memory_mask.
memory, mask, memory_mask) -> memory, memory_mask, memory_mask)
    The decoder's self-attention gets the padding mask of the source. It needs the causal mask.
{DECODE} -> x = layer(x, memory, mask if layer is decoder_layers[0] else None, memory_mask)
    Only the first decoder layer gets the causal mask. The others attend to later positions.
layer(x, memory, mask -> layer(memory, x, mask
layer(x, memory, mask, memory_mask) -> layer(memory, x, memory_mask, mask)
    x and memory are exchanged: the queries of the decoder come from x, layer(x, memory, …).
layer(x, memory, -> layer(x, x,
layer(x, memory, mask, memory_mask) -> layer(x, x, mask, mask)
    Every decoder layer gets x as its memory, so the source is never used. Every one attends to the encoder's output.
{DECODE} -> x = memory = layer(x, memory, mask, memory_mask)
    You replace the memory by the output of a decoder layer. Every layer attends to the same memory.
for layer in encoder_layers: -> for layer in []:
    The memory is the embedded source: no encoder layer was applied.
for layer in decoder_layers: -> for layer in []:
    No decoder layer was applied: your logits are those of the embedded target.
{ENCODE} -> out = layer(memory, memory_mask)
+ layer(x, memory, -> layer(x, out,
    Every encoder layer gets the embeddings, so only the last one counts. Each gets the output of the one before it.
x = layer(x, memory -> out = layer(x, memory
+ {RETURN} -> return lm_head(out)
    Every decoder layer gets the embeddings, so only the last one counts. Each gets the output of the one before it.
{ENCODE} -> memory = memory + layer(memory, memory_mask)
    You add to the memory the output of an encoder layer. The residual connections are inside the layers already.
{DECODE} -> x = x + layer(x, memory, mask, memory_mask)
    You add x to the output of a decoder layer. The residual connections are inside the layers already.
in encoder_layers: -> in encoder_layers[::-1]:
    The encoder layers are applied in reverse order.
in decoder_layers: -> in decoder_layers[::-1]:
    The decoder layers are applied in reverse order.
x = embed_target(target) -> x = embed_source(target)
    The target goes through the source embedding. It has one of its own: embed_target.
memory = embed_source(source) -> memory = embed_target(source)
    The source goes through the target embedding. It has one of its own: embed_source.
x = embed_target(target) -> x = embed_target(target); x = x * x.shape[-1] ** 0.5
    You multiply the target embeddings by √d_model. embed_target returns the complete input of the first layer.
memory = embed_source(source) -> memory = embed_source(source); memory = memory * memory.shape[-1] ** 0.5
    You multiply the source embeddings by √d_model. embed_source returns the complete input of the first layer.
length = target.shape[1] -> target = target[:, :-1]; length = target.shape[1]
    You drop the last token of the target. Here target is the input of the decoder already: one row of logits for each
    of its tokens.
length = target.shape[1] -> target = target[:, 1:]; length = target.shape[1]
    You drop the first token of the target. Here target is the input of the decoder already: one row of logits for
    each of its tokens.
{RETURN} -> return x
    You return hidden states, (batch, target, d_model). lm_head turns them into logits.
{RETURN} -> return torch.softmax(lm_head(x), dim=-1)
    You return probabilities. The loss expects logits and applies the softmax itself.
{RETURN} -> return torch.log_softmax(lm_head(x), dim=-1)
    You return log-probabilities. The loss expects logits and applies the softmax itself.
{RETURN} -> return lm_head(x).argmax(dim=-1)
    You return token numbers. The loss, sampling and beam search need the logits.
{RETURN} -> return lm_head(x)[:, -1]
{RETURN} -> return lm_head(x)[:, -1:]
    You return the logits of the last position. Generation needs no others, but training needs all.
{RETURN} -> return lm_head(x) / x.shape[-1] ** 0.5
    You divide the logits by √d_model. What lm_head returns are the logits.
memory = embed_source(source) -> memory, states = embed_source(source), []
+ memory = layer(memory, memory_mask) -> memory = layer(memory, memory_mask); states.append(memory)
+ for layer in decoder_layers: -> for memory, layer in zip(states, decoder_layers, strict=False):
    Decoder layer i reads the output of encoder layer i. All decoder layers read the output of the last encoder layer.
"""

CASES = (
    dict(  # as many tokens in the target as in the source: no error is raised
        source=torch.tensor([[4, 0]]), target=torch.tensor([[1, 5]]), **_parts(2, 2, seed=140)
    ),
    dict(
        source=torch.tensor([[5, 3, 2], [6, 0, 0]]),
        target=torch.tensor([[1, 5, 3], [1, 4, 4]]),
        **_parts(4, 3, seed=1160),
    ),
    dict(
        source=torch.tensor([[5, 3, 2, 6, 4], [6, 3, 0, 0, 0]]),
        target=torch.tensor([[1, 5, 3], [1, 6, 6]]),
        **_parts(4, 2, seed=2180),
    ),
)
HINTS = """
Read figure 1 from the bottom to the top, first the left half, then the right: what does each box get?
memory_mask = (source != 0)[:, None, :] goes to every encoder layer and to every decoder layer; the causal mask,
    torch.ones(length, length, dtype=torch.bool).tril(), to every decoder layer.
After the encoder: x = embed_target(target); for layer in decoder_layers: x = layer(x, memory, mask, memory_mask);
    return lm_head(x).
"""
DIFFERENTIABLE = False
