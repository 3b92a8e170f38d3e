"""Exercise `decode_logits` of notebook 08."""

from functools import partial

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import NamedFunction, trained_norm
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, padding_mask


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


def _decode(
    target,
    memory,
    memory_mask,
    embed,
    layers,
    final_norm,
    lm_head,
    *,
    masks=lambda mask, memory_mask: (mask, memory_mask),
    norm="last",
    chain="x",
    head=None,
    masked=lambda number: True,
):
    x = start = embed(target)
    mask, memory_mask = masks(causal_mask(target.shape[1]), memory_mask)
    x = final_norm(x) if "first" in norm else x
    causal = mask
    for number, layer in enumerate(layers):
        mask = causal if masked(number) else None
        if chain == "memory":
            x = memory = layer(x, memory, mask, memory_mask)
        elif chain == "x twice":
            x = layer(x, x, mask, memory_mask)
        elif chain == "residual":
            x = x + layer(x, memory, mask, memory_mask)
        elif chain == "swapped":
            x = layer(memory, x, mask, memory_mask)
        else:
            x = layer(start if chain == "start" else x, memory, mask, memory_mask)
        x = final_norm(x) if "each" in norm else x
    x = final_norm(x) if "last" in norm else x
    return (head or lm_head)(x)


def _first_layer_only(target, memory, memory_mask, embed, layers, *rest):
    return _decode(target, memory, memory_mask, embed, layers[:1], *rest)


def _reversed(target, memory, memory_mask, embed, layers, *rest):
    return _decode(target, memory, memory_mask, embed, layers[::-1], *rest)


EXERCISE = Exercise(
    name="decode_logits",
    notebook="08_transformer",
    title="The forward pass of a decoder",
    reference=_decode,
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
    mistakes=(
        Mistake(
            "no_mask",
            partial(_decode, masks=lambda mask, memory_mask: (None, memory_mask)),
            "The self-attention has no mask, so each position attends to the tokens after it, its label among them.",
        ),
        Mistake(
            "transposed_mask",
            partial(_decode, masks=lambda mask, memory_mask: (mask.T, memory_mask)),
            "The triangle is transposed: your positions attend to the future. .tril() keeps the past.",
        ),
        Mistake(
            "inverted_mask",
            partial(_decode, masks=lambda mask, memory_mask: (~mask, memory_mask)),
            "The mask is inverted, as nn.Transformer expects it. The layers here take True = may attend.",
        ),
        Mistake(
            "without_diagonal",
            partial(_decode, masks=lambda mask, memory_mask: (mask.tril(-1), memory_mask)),
            "The diagonal is masked, but a position may attend to itself.",
        ),
        Mistake(
            "no_memory_mask",
            partial(_decode, masks=lambda mask, memory_mask: (mask, None)),
            "The cross-attention has no mask: it attends to the padding of the source.",
        ),
        Mistake(
            "no_masks",
            partial(_decode, masks=lambda mask, memory_mask: (None, None)),
            "Neither attention has a mask.",
        ),
        Mistake(
            "not_chained",
            partial(_decode, chain="start"),
            "Every layer gets the embeddings, so only the last one counts. Each layer gets the output of the one "
            "before: x = layer(x, …).",
        ),
        Mistake(
            "memory_replaced",
            partial(_decode, chain="memory"),
            "You replace the memory by the output of a layer. Every layer attends to the same memory.",
        ),
        Mistake(
            "first_layer_only",
            _first_layer_only,
            "Only the first layer is used.",
        ),
        Mistake(
            "reversed",
            _reversed,
            "The layers are applied in reverse order.",
        ),
        Mistake(
            "no_final_norm",
            partial(_decode, norm="none"),
            "The final norm is missing. Pre-norm layers leave their output unnormalised, so the stack ends with a norm.",
        ),
        Mistake(
            "norm_in_each_layer",
            partial(_decode, norm="each"),
            "You apply the final norm after every layer. It comes once, after the last.",
        ),
        Mistake(
            "no_lm_head",
            partial(_decode, head=lambda x: x),
            "You return hidden states, (batch, target, d_model). lm_head turns them into logits.",
        ),
        Mistake(
            "probabilities",
            lambda *a: torch.softmax(_decode(*a), dim=-1),
            "You return probabilities. The loss expects logits and applies the softmax itself.",
        ),
        Mistake(
            "last_position_only",
            lambda *a: _decode(*a)[:, -1],
            "You return the logits of the last position. Generation needs no others, but training needs all.",
        ),
        Mistake(
            "one_ahead",
            partial(
                _decode,
                masks=lambda mask, memory_mask: (torch.ones_like(mask).tril(1), memory_mask),
            ),
            "Off by one: each position attends to the token after it, which is its label.",
        ),
        Mistake(
            "masks_exchanged",
            partial(_decode, masks=lambda mask, memory_mask: (memory_mask, mask)),
            "The masks are exchanged: layer(x, memory, mask, memory_mask). Where target and source have the same length, no "
            "error is raised.",
        ),
        Mistake(
            "mask_twice",
            partial(_decode, masks=lambda mask, memory_mask: (mask, mask)),
            "The cross-attention gets the causal mask. The whole source is known; only its padding is masked: memory_mask.",
        ),
        Mistake(
            "memory_mask_twice",
            partial(_decode, masks=lambda mask, memory_mask: (memory_mask, memory_mask)),
            "The self-attention gets memory_mask, so positions attend to later ones. It needs the causal mask.",
        ),
        Mistake(
            "memory_mask_inverted",
            partial(_decode, masks=lambda mask, memory_mask: (mask, ~memory_mask)),
            "The mask of the memory is inverted, as nn.Transformer expects it. The layers here take True = may attend.",
        ),
        Mistake(
            "x_and_memory_exchanged",
            partial(_decode, chain="swapped"),
            "x and memory are exchanged: the queries come from x, layer(x, memory, …).",
        ),
        Mistake(
            "memory_is_x",
            partial(_decode, chain="x twice"),
            "Every layer gets x as its memory, so the source is never used. Every layer attends to the same memory.",
        ),
        Mistake(
            "residual_around_the_layer",
            partial(_decode, chain="residual"),
            "You add x to the output of a layer. The residual connections are inside the layer already.",
        ),
        Mistake(
            "norm_first",
            partial(_decode, norm="first"),
            "The final norm comes before the first layer. It belongs after the last.",
        ),
        Mistake(
            "norm_first_and_last",
            partial(_decode, norm="first and last"),
            "The norm after the last layer is right. Remove the one before the first: a pre-norm layer normalises its own "
            "input.",
        ),
        Mistake(
            "norm_in_each_layer_and_last",
            partial(_decode, norm="each and last"),
            "You apply the final norm after every layer, and once more at the end. It comes once, after the last layer.",
        ),
        Mistake(
            "memory_normed",
            lambda target, memory, memory_mask, embed, layers, norm, head: _decode(
                target, norm(memory), memory_mask, embed, layers, norm, head
            ),
            "You normalise the memory. The final norm of the encoder has done so; final_norm here is that of the decoder.",
        ),
        Mistake(
            "mask_for_the_first",
            partial(_decode, masked=lambda number: number == 0),
            "Only the first layer gets the causal mask. The others attend to later positions.",
        ),
        Mistake(
            "last_layer_left_out",
            lambda target, memory, memory_mask, embed, layers, *rest: _decode(
                target, memory, memory_mask, embed, layers[:-1], *rest
            ),
            "The last layer is left out.",
        ),
        Mistake(
            "first_layer_repeated",
            lambda target, memory, memory_mask, embed, layers, *rest: _decode(
                target, memory, memory_mask, embed, [layers[0]] * len(layers), *rest
            ),
            "You apply the first layer each time. Each layer has weights of its own.",
        ),
        Mistake(
            "target_shifted",
            lambda target, *rest: _decode(target[:, :-1], *rest),
            "You drop the last token of the target. Here target is the input of the decoder already: one row of logits for "
            "each of its tokens.",
        ),
        Mistake(
            "last_position_as_a_row",
            lambda *a: _decode(*a)[:, -1:],
            "You return the logits of the last position. Generation needs no others, but training needs all.",
        ),
        Mistake(
            "log_probabilities",
            lambda *a: torch.log_softmax(_decode(*a), dim=-1),
            "You return log-probabilities. The loss expects logits and applies the softmax itself.",
        ),
        Mistake(
            "embeddings_added",
            lambda target, memory, memory_mask, embed, layers, norm, head: _decode(
                target,
                memory,
                memory_mask,
                embed,
                layers,
                lambda x: norm(x) + embed(target),
                head,
            ),
            "You add the embeddings to the output once more. The residual connections are inside the layers already.",
        ),
        Mistake(
            "embeddings_added_before_the_norm",
            lambda target, memory, memory_mask, embed, layers, norm, head: _decode(
                target, memory, memory_mask, embed, layers, lambda x: norm(x + embed(target)), head
            ),
            "You add the embeddings to the output once more. The residual connections are inside the layers already.",
        ),
    ),
    hints=(
        "Figure 1, right half, from the bottom to the top: what is computed first, and what does each layer get?",
        "The mask is a lower triangle: torch.ones(length, length, dtype=torch.bool).tril(). Every layer gets the same "
        "memory and both masks.",
        "x = embed(target); for layer in layers: x = layer(x, memory, mask, memory_mask); lm_head(final_norm(x)).",
    ),
    differentiable=False,
)
