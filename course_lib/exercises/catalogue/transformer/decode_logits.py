"""Exercise `decode_logits` of notebook 08."""

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import NamedFunction, trained_norm
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise
from course_lib.masks import padding_mask


def decode_logits(target, memory, memory_mask, embed, layers, final_norm, lm_head):
    length = target.shape[1]
    mask = torch.ones(length, length, dtype=torch.bool).tril()  # (target, target)
    x = embed(target)  # (batch, target, d_model)
    for layer in layers:
        x = layer(x, memory, mask, memory_mask)  # (batch, target, d_model)
    return lm_head(final_norm(x))  # (batch, target, vocabulary)


def _layer(size, seed, name):
    """A pre-norm decoder layer with random weights."""
    W = random_tensor(5, size, size, seed=seed)
    norms = [trained_norm(size, seed + 1 + number) for number in range(2)]

    def attend(x, keys, mask, q, k):
        return scaled_dot_product_attention(x @ W[q], keys @ W[k], keys, mask).output

    def layer(x, memory, mask, memory_mask):
        memory = memory.to(x.dtype)
        y = norms[0](x)
        x = x + attend(y, y, mask, 0, 1)
        x = x + attend(norms[1](x), memory, memory_mask, 2, 3)
        return x + torch.tanh(x @ W[4])

    return NamedFunction(name, layer)


def _parts(size, layers, seed, vocabulary=7):
    table, W = (
        random_tensor(vocabulary, size, seed=seed),
        random_tensor(size, vocabulary, seed=seed + 1),
    )
    positions = random_tensor(9, size, seed=seed + 2)
    return {
        "embed": NamedFunction(
            "an embedding", lambda target: table[target] + positions[: target.shape[1]]
        ),
        "layers": [_layer(size, seed + 10 * n, f"layer {n}") for n in range(1, layers + 1)],
        "final_norm": trained_norm(size, seed + 3),
        "lm_head": NamedFunction("a linear layer", lambda x: x @ W),
    }


EACH = "x = layer(x, memory, mask, memory_mask)"
TRIL = "torch.ones(length, length, dtype=torch.bool).tril()"
RETURN = "return lm_head(final_norm(x))"
MISTAKES = f"""
memory, mask, memory_mask) -> memory, None, memory_mask)
    The self-attention has no mask, so each position attends to the tokens after it, its label among them.
.tril() -> .triu()
    The triangle is transposed: your positions attend to the future. .tril() keeps the past.
.tril() -> .triu(1)
    The mask is inverted, as nn.Transformer expects it. The layers here take True = may attend.
.tril() -> .tril(-1)
    The diagonal is masked, but a position may attend to itself.
.tril() -> .tril(1)
    Off by one: each position attends to the token after it, which is its label.
{TRIL} -> torch.eye(length, dtype=torch.bool)
    Each position attends only to itself. It may attend to all positions before it too: .tril().
length = target.shape[1] -> length = memory.shape[1]
    Your causal mask has the length of the source. It is for the self-attention, so both its axes are target
    positions.
mask, memory_mask) -> mask, None)
    The cross-attention has no mask: it attends to the padding of the source.
memory, mask, memory_mask) -> memory, None, None)
    Neither attention has a mask.
memory, mask, memory_mask) -> memory, memory_mask, mask)
    The masks are exchanged: layer(x, memory, mask, memory_mask). Where target and source have the same length, no
    error is raised.
mask, memory_mask) -> mask, mask)
    The cross-attention gets the causal mask. The whole source is known; only its padding is masked: memory_mask.
memory, mask, memory_mask) -> memory, memory_mask, memory_mask)
    The self-attention gets memory_mask, so positions attend to later ones. It needs the causal mask.
mask, memory_mask) -> mask, ~memory_mask)
    The mask of the memory is inverted, as nn.Transformer expects it. The layers here take True = may attend.
{EACH} -> x = layer(x, memory, mask if layer is layers[0] else None, memory_mask)
    Only the first layer gets the causal mask. The others attend to later positions.
layer(x, memory, mask -> layer(memory, x, mask
layer(x, memory, mask, memory_mask) -> layer(memory, x, memory_mask, mask)
    x and memory are exchanged: the queries come from x, layer(x, memory, …).
layer(x, memory, -> layer(x, x,
layer(x, memory, mask, memory_mask) -> layer(x, x, mask, mask)
    Every layer gets x as its memory, so the source is never used. Every layer attends to the same memory.
{EACH} -> x = memory = layer(x, memory, mask, memory_mask)
    You replace the memory by the output of a layer. Every layer attends to the same memory.
(x, memory, mask -> (x, final_norm(memory), mask
    You normalise the memory. The final norm of the encoder has done so; final_norm here is that of the decoder.
x = layer(x, -> last = layer(x,
+ final_norm(x) -> final_norm(last)
    Every layer gets the embeddings, so only the last one counts. Each layer gets the output of the one before: x =
    layer(x, …).
{EACH} -> x = x + layer(x, memory, mask, memory_mask)
    You add x to the output of a layer. The residual connections are inside the layer already.
in layers: -> in layers[:1]:
    Only the first layer is used.
in layers: -> in layers[1:]:
    The first layer is left out.
in layers: -> in layers[:-1]:
    The last layer is left out.
in layers: -> in layers[::-1]:
    The layers are applied in reverse order.
x = layer(x, -> x = layers[0](x,
    You apply the first layer each time. Each layer has weights of its own.
x = embed(target) -> x = embed(target) * memory.shape[-1] ** 0.5
    You multiply the embeddings by √d_model. embed returns the complete input of the first layer: pass it on as it is.
x = embed(target) -> x = embed(target) / memory.shape[-1] ** 0.5
    You divide the embeddings by √d_model. embed returns the complete input of the first layer: pass it on as it is.
length = target.shape[1] -> target = target[:, :-1]; length = target.shape[1]
    You drop the last token of the target. Here target is the input of the decoder already: one row of logits for each
    of its tokens.
length = target.shape[1] -> target = target[:, 1:]; length = target.shape[1]
    You drop the first token of the target. Here target is the input of the decoder already: one row of logits for
    each of its tokens.
lm_head(final_norm(x)) -> lm_head(x)
    The final norm is missing. Pre-norm layers leave their output unnormalised, so the stack ends with a norm.
{EACH} -> x = final_norm(layer(x, memory, mask, memory_mask))
+ lm_head(final_norm(x)) -> lm_head(x)
    You apply the final norm after every layer. It comes once, after the last.
{EACH} -> x = final_norm(layer(x, memory, mask, memory_mask))
    You apply the final norm after every layer, and once more at the end. It comes once, after the last layer.
{EACH} -> x = layer(final_norm(x), memory, mask, memory_mask)
    You apply the final norm to the input of every layer. A pre-norm layer normalises its own input; the final norm
    comes once, after the last layer.
x = embed(target) -> x = final_norm(embed(target))
+ lm_head(final_norm(x)) -> lm_head(x)
    The final norm comes before the first layer. It belongs after the last.
x = embed(target) -> x = final_norm(embed(target))
    You apply the final norm before the first layer too. Leave it out there: a pre-norm layer normalises its own
    input.
{RETURN} -> return lm_head(final_norm(x) + embed(target))
{RETURN} -> return lm_head(final_norm(x + embed(target)))
    You add the embeddings to the output once more. The residual connections are inside the layers already.
{RETURN} -> return final_norm(lm_head(x))
    Your final norm comes after lm_head. It normalises hidden states: lm_head(final_norm(x)).
{RETURN} -> return final_norm(x)
    You return hidden states, (batch, target, d_model). lm_head turns them into logits.
{RETURN} -> return torch.softmax(lm_head(final_norm(x)), dim=-1)
    You return probabilities. The loss expects logits and applies the softmax itself.
{RETURN} -> return torch.log_softmax(lm_head(final_norm(x)), dim=-1)
    You return log-probabilities. The loss expects logits and applies the softmax itself.
{RETURN} -> return lm_head(final_norm(x)).argmax(dim=-1)
    You return token numbers. The loss, sampling and beam search need the logits.
{RETURN} -> return lm_head(final_norm(x))[:, -1]
{RETURN} -> return lm_head(final_norm(x))[:, -1:]
    You return the logits of the last position. Generation needs no others, but training needs all.
{RETURN} -> return lm_head(final_norm(x)) / memory.shape[-1] ** 0.5
    You divide the logits by √d_model. What lm_head returns are the logits.
"""

EXERCISE = Exercise(
    title="The forward pass of a decoder",
    solution=decode_logits,
    cases=(
        Case(  # as many tokens in the target as in the source: no error is raised
            target=torch.tensor([[1, 5]]),
            memory=torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]),
            memory_mask=torch.tensor([[[False, True]]]),
            **_parts(2, 2, seed=140),
        ),
        Case(
            target=torch.tensor([[1, 5, 3], [1, 4, 4]]),
            memory=random_tensor(2, 3, 4, seed=150),
            memory_mask=padding_mask(torch.tensor([3, 1])),
            **_parts(4, 3, seed=160),
        ),
        Case(
            target=torch.tensor([[1, 5, 3], [1, 6, 6]]),
            memory=random_tensor(2, 5, 4, seed=170),
            memory_mask=padding_mask(torch.tensor([5, 2])),
            **_parts(4, 2, seed=180),
        ),
    ),
    mistakes=mistakes(decode_logits, MISTAKES),
    hints=(
        "Figure 1, right half, from the bottom to the top: what is computed first, and what does each layer get?",
        "The mask is a lower triangle: torch.ones(length, length, dtype=torch.bool).tril(). Every layer gets the same "
        "memory and both masks.",
        "x = embed(target); for layer in layers: x = layer(x, memory, mask, memory_mask); lm_head(final_norm(x)).",
    ),
)
