"""Exercises and bug hunts of notebook 07."""

from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from course_lib.attention import scaled_dot_product_attention
from course_lib.blocks import FeedForward, LayerNorm
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, padding_mask

_NOTEBOOK = "07_transformer_blocks"


def _drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _short(*shape, seed):
    """Drawn as well, with one decimal: for a report that is read."""
    return _drawn(*shape, seed=seed).round(decimals=1)


class _Part:
    """A function in a case: it shows a name, and its copy is itself."""

    def __init__(self, name, function):
        self._name, self._function = name, function

    def __call__(self, *args):
        return self._function(*args)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return self._name


def _a_norm(size, seed, name="a layer norm"):
    """A layer norm as if it were trained: a second one changes its output."""
    weight, bias = _drawn(2, size, seed=seed) + torch.tensor([[1.5], [0.5]])
    return _Part(
        name, lambda x: F.layer_norm(x, x.shape[-1:], weight.to(x.dtype), bias.to(x.dtype))
    )


def _a_network(size, seed, name="a network"):
    W = _drawn(size, size, seed=seed)
    return _Part(name, lambda x: torch.tanh(x @ W.to(x.dtype)))


# --- layer_norm ------------------------------------------------------------------------------


def layer_norm(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)  # (…, 1): of each vector
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)  # divided by d, not d - 1
    normal = (x - mean) / torch.sqrt(variance + eps)
    return normal * weight + bias


def _normal(x, eps, *, dim=-1, ddof=0, eps_at="inside", centred="xv", rooted=True):
    """A norm with one thing or another wrong; `centred` says where the mean is taken off."""
    centre = x - x.mean(dim, keepdim=True)
    square = (centre if "v" in centred else x) ** 2
    count = torch.ones_like(x).sum(dim, keepdim=True)
    variance = square.sum(dim, keepdim=True) / (count - ddof)
    spread = {
        "inside": (variance + eps).sqrt() if rooted else variance + eps,
        "outside": variance.sqrt() + eps,
        "nowhere": variance.sqrt(),
    }[eps_at]
    return (centre if "x" in centred else x) / spread


def _layer_norm(x, weight, bias, eps, **wrong):
    return _normal(x, eps, **wrong) * weight + bias


_LAYER_NORM = Exercise(
    name="layer_norm",
    notebook=_NOTEBOOK,
    title="Layer normalisation by hand",
    reference=lambda x, weight, bias, eps: functional_call(
        LayerNorm(len(weight), eps), {"weight": weight, "bias": bias}, (x,)
    ),
    solution=layer_norm,
    cases=(
        Case(  # the second row is so small that eps counts
            x=torch.tensor([[[1.0, 2.0, 6.0], [0.003, -0.001, 0.004]]]),
            weight=torch.tensor([2.0, 1.0, -0.5]),
            bias=torch.tensor([0.5, 0.0, 1.0]),
            eps=1e-5,
        ),
        Case(
            x=_drawn(2, 4, 5, seed=0) + 1,
            weight=_drawn(5, seed=1),
            bias=_drawn(5, seed=2),
            eps=1e-3,
        ),
        Case(  # and a vector of equal numbers
            x=torch.cat([_drawn(3, 2, 7, seed=3), torch.full((3, 1, 7), 2.0)], dim=1),
            weight=_drawn(7, seed=4),
            bias=_drawn(7, seed=5),
            eps=1e-5,
        ),
    ),
    mistakes=(
        Mistake(
            "eps_outside",
            partial(_layer_norm, eps_at="outside"),
            "Your epsilon stands outside the root. It is added to the variance: sqrt(variance + eps). You see it "
            "where the numbers of a vector are nearly equal.",
        ),
        Mistake(
            "unbiased",
            partial(_layer_norm, ddof=1),
            "Your variance is divided by d - 1, as .var() and .std() do unless told otherwise. A layer norm divides "
            "by d: correction=0.",
        ),
        Mistake(
            "unbiased_and_eps_outside",
            partial(_layer_norm, ddof=1, eps_at="outside"),
            "You divide by .std() + eps. Two things differ: a layer norm divides the sum of squares by d, not by "
            "d - 1, and its epsilon stands inside the root.",
        ),
        Mistake(
            "no_eps",
            partial(_layer_norm, eps_at="nowhere"),
            "You never use eps. A vector of equal numbers is divided by 0.",
        ),
        Mistake(
            "not_rooted",
            partial(_layer_norm, rooted=False),
            "You divide by the variance. Divide by its root, or the result has variance 1 only where it had so before.",
        ),
        Mistake(
            "root_mean_square",
            partial(_layer_norm, centred=""),
            "Your mean is never subtracted. What you have is RMSNorm, which exists and is another norm.",
        ),
        Mistake(
            "mean_left_in_x",
            partial(_layer_norm, centred="v"),
            "Your variance is right, but the mean stays in x: divide x - mean.",
        ),
        Mistake(
            "mean_left_in_variance",
            partial(_layer_norm, centred="x"),
            "You subtract the mean from x, but not inside the variance: that is the mean of (x - mean)².",
        ),
        Mistake(
            "over_tokens",
            partial(_layer_norm, dim=-2),
            "Your mean and variance run over the tokens, so a token depends on its neighbours. Each vector is "
            "normalised by itself: dim=-1.",
        ),
        Mistake(
            "over_batch",
            partial(_layer_norm, dim=0),
            "Your mean and variance run over the batch, so a sentence depends on the others. Each vector is "
            "normalised by itself: dim=-1.",
        ),
        Mistake(
            "batch_norm",
            partial(_layer_norm, dim=(0, 1)),
            "Your mean and variance run over batch and tokens, for each feature: that is BatchNorm. Each vector is "
            "normalised by itself: dim=-1.",
        ),
        Mistake(
            "whole_sentence",
            partial(_layer_norm, dim=(-2, -1)),
            "Your mean and variance are those of a whole sentence. Each vector is normalised by itself: dim=-1.",
        ),
        Mistake(
            "everything",
            partial(_layer_norm, dim=(0, 1, 2)),
            "You take one mean and one variance of all numbers. Each vector has its own: dim=-1, keepdim=True.",
        ),
        Mistake(
            "weight_added",
            lambda x, w, b, eps: _normal(x, eps) + w + b,
            "You add the weight. It multiplies; the bias is added.",
        ),
        Mistake(
            "bias_multiplied",
            lambda x, w, b, eps: _normal(x, eps) * w * b,
            "You multiply by the bias. It is added, after the weight has multiplied.",
        ),
        Mistake(
            "exchanged",
            lambda x, w, b, eps: _normal(x, eps) * b + w,
            "Weight and bias have changed places: the weight multiplies, the bias is added.",
        ),
        Mistake(
            "bias_first",
            lambda x, w, b, eps: (_normal(x, eps) + b) * w,
            "You add the bias first, so the weight multiplies it as well. First the weight, then the bias.",
        ),
        Mistake(
            "no_bias",
            lambda x, w, b, eps: _normal(x, eps) * w,
            "The bias is never used.",
        ),
        Mistake(
            "no_weight",
            lambda x, w, b, eps: _normal(x, eps) + b,
            "The weight is never used.",
        ),
        Mistake(
            "neither",
            lambda x, w, b, eps: _normal(x, eps),
            "Normalised right. What was learned is yet to come: times weight, plus bias.",
        ),
    ),
    hints=(
        "Four steps: the mean of each vector, its variance, normalise, then weight and bias. Which axis is a vector?",
        "mean = x.mean(dim=-1, keepdim=True). The variance is the mean of (x - mean) ** 2 along the same axis.",
        "(x - mean) / torch.sqrt(variance + eps) * weight + bias.",
    ),
)


# --- feed_forward ----------------------------------------------------------------------------


def feed_forward(x, w1, b1, w2, b2):
    wider = torch.relu(x @ w1.T + b1)  # (…, d_ff)
    return wider @ w2.T + b2  # (…, d_model)


def _fed(x, w1, b1, w2, b2, *, bend=torch.relu):
    return bend(x @ w1.mT + b1) @ w2.mT + b2


_SQUARE = {
    "w1": torch.tensor([[1.0, -0.5], [2.0, 0.3]]),
    "b1": torch.tensor([0.2, -0.6]),
    "w2": torch.tensor([[0.4, 1.0], [-1.5, 0.7]]),
    "b2": torch.tensor([0.1, -0.9]),
}

_FEED_FORWARD = Exercise(
    name="feed_forward",
    notebook=_NOTEBOOK,
    title="The network that works on every token by itself",
    reference=lambda x, w1, b1, w2, b2: functional_call(
        FeedForward(*w2.shape),
        {"wider.weight": w1, "wider.bias": b1, "back.weight": w2, "back.bias": b2},
        (x,),
    ),
    solution=feed_forward,
    cases=(
        # as many tokens as numbers in a vector, and no wider inside: nothing raises
        Case(x=torch.tensor([[[1.0, -0.5], [-1.2, 0.8]]]), **_SQUARE),
        Case(
            x=_drawn(2, 3, 4, seed=6),
            w1=_drawn(6, 4, seed=7),
            b1=_drawn(6, seed=8),
            w2=_drawn(4, 6, seed=9),
            b2=_drawn(4, seed=10),
        ),
    ),
    mistakes=(
        Mistake(
            "no_bend",
            partial(_fed, bend=lambda u: u),
            "There is no activation. Two linear layers in a row are one linear layer.",
        ),
        Mistake(
            "bend_at_the_end_too",
            lambda *a: torch.relu(_fed(*a)),
            "You have an activation at the end as well. The network could only add to a vector, never take away.",
        ),
        Mistake(
            "bend_at_the_end",
            lambda *a: torch.relu(_fed(*a, bend=lambda u: u)),
            "Your activation stands at the end. It belongs between the two layers.",
        ),
        Mistake(
            "bend_first",
            lambda x, *a: _fed(torch.relu(x), *a, bend=lambda u: u),
            "Your activation stands before the first layer. It belongs between the two.",
        ),
        Mistake(
            "not_transposed",
            lambda x, w1, b1, w2, b2: _fed(x, w1.T, b1, w2.T, b2),
            "You multiply with the matrices as they are. They are (out, in), as nn.Linear holds them: x @ w1.T. "
            "Where they are square, nothing raises an error.",
        ),
        Mistake(
            "first_not_transposed",
            lambda x, w1, b1, w2, b2: _fed(x, w1.T, b1, w2, b2),
            "w1 is (out, in), as nn.Linear holds it: x @ w1.T.",
        ),
        Mistake(
            "second_not_transposed",
            lambda x, w1, b1, w2, b2: _fed(x, w1, b1, w2.T, b2),
            "Right up to the second layer: w2 is (out, in) like the first, so … @ w2.T.",
        ),
        Mistake(
            "over_tokens",
            lambda x, w1, b1, w2, b2: _fed(x.mT, w1, b1, w2, b2).mT,
            "Your matrices mix the tokens. Each token is changed by itself, whatever stands beside it.",
        ),
        Mistake(
            "from_the_left",
            lambda x, w1, b1, w2, b2: w2 @ torch.relu(w1 @ x + b1) + b2,
            "w1 @ x mixes the tokens: it sums over the second axis of x. Each vector is a row here, so x @ w1.T.",
        ),
        Mistake(
            "exchanged",
            lambda x, w1, b1, w2, b2: _fed(x, w2, b2, w1, b1),
            "The two layers have changed places.",
        ),
        Mistake(
            "bias_after_the_bend",
            lambda x, w1, b1, w2, b2: (torch.relu(x @ w1.T) + b1) @ w2.T + b2,
            "You add b1 after the activation. It moves the place of the bend: relu(x @ w1.T + b1).",
        ),
        Mistake(
            "no_b1",
            lambda x, w1, b1, w2, b2: _fed(x, w1, 0 * b1, w2, b2),
            "b1 is never used.",
        ),
        Mistake(
            "no_b2",
            lambda x, w1, b1, w2, b2: _fed(x, w1, b1, w2, 0 * b2),
            "b2 is never used.",
        ),
        Mistake(
            "no_bias",
            lambda x, w1, b1, w2, b2: _fed(x, w1, 0 * b1, w2, 0 * b2),
            "The biases b1 and b2 are never used.",
        ),
        Mistake(
            "way_around",
            lambda x, *a: x + _fed(x, *a),
            "You add x. The way around the network is not part of it: the block adds x.",
        ),
        Mistake(
            "first_layer_only",
            lambda x, w1, b1, w2, b2: torch.relu(x @ w1.T + b1),
            "The second layer is missing, the one that leads back to d_model.",
        ),
        Mistake(
            "gelu",
            partial(_fed, bend=F.gelu),
            "Your activation is a GELU. Later models use it; here it is max(0, u).",
        ),
        Mistake(
            "tanh",
            partial(_fed, bend=torch.tanh),
            "Your activation is a tanh. Here it is max(0, u).",
        ),
        Mistake(
            "sigmoid",
            partial(_fed, bend=torch.sigmoid),
            "Your activation is a sigmoid. Here it is max(0, u).",
        ),
        Mistake(
            "absolute",
            partial(_fed, bend=torch.abs),
            "You take the absolute value. max(0, u) sets what is negative to 0.",
        ),
        Mistake(
            "negative_kept",
            partial(_fed, bend=lambda u: u.clamp(max=0)),
            "You keep what is negative. max(0, u) keeps what is positive.",
        ),
    ),
    hints=(
        "Three steps: wider, bend, back. Write the shape behind each line.",
        "nn.Linear holds its matrix as (out, in), so the first layer is x @ w1.T + b1.",
        "torch.relu(x @ w1.T + b1) @ w2.T + b2.",
    ),
)


# --- add_and_norm ----------------------------------------------------------------------------


def add_and_norm(x, sublayer, norm, placement):
    if placement == "pre":
        return x + sublayer(norm(x))
    return norm(x + sublayer(x))


#: What whoever adds and normalises may come to.
_SUMS = {
    "pre": lambda x, f, n: x + f(n(x)),
    "post": lambda x, f, n: n(x + f(x)),
    "sum_normed_apart": lambda x, f, n: n(x) + f(n(x)),
    "x_normed": lambda x, f, n: n(x) + f(x),
    "output_normed": lambda x, f, n: x + n(f(x)),
    "output_normed_too": lambda x, f, n: x + n(f(n(x))),
    "sum_normed_too": lambda x, f, n: n(x + f(n(x))),
    "twice": lambda x, f, n: n(n(x + f(x))),
    "alone_pre": lambda x, f, n: f(n(x)),
    "alone_post": lambda x, f, n: n(f(x)),
    "no_norm": lambda x, f, n: x + f(x),
    "alone": lambda x, f, n: f(x),
}


def _sums(pre="pre", post="post"):
    return lambda x, f, n, placement: _SUMS[{"pre": pre, "post": post}[placement]](x, f, n)


_ADD_AND_NORM = Exercise(
    name="add_and_norm",
    notebook=_NOTEBOOK,
    title="The way around a sublayer, with the norm before or after",
    reference=_sums(),
    solution=add_and_norm,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0, -0.5]]]),
            sublayer=_a_network(3, seed=11),
            norm=_a_norm(3, seed=12),
            placement="pre",
        ),
        Case(
            x=torch.tensor([[[1.0, 2.0, -0.5]]]),
            sublayer=_a_network(3, seed=11),
            norm=_a_norm(3, seed=12),
            placement="post",
        ),
        Case(
            x=_drawn(2, 3, 4, seed=13),
            sublayer=_a_network(4, seed=14),
            norm=_a_norm(4, seed=15),
            placement="post",
        ),
        Case(
            x=_drawn(2, 4, 5, seed=16),
            sublayer=_a_network(5, seed=17),
            norm=_a_norm(5, seed=18),
            placement="pre",
        ),
    ),
    mistakes=(
        Mistake(
            "exchanged",
            _sums("post", "pre"),
            "The two are exchanged: under the name of pre-norm you compute post-norm, and the other way round. "
            '"pre" says that the norm comes before the sublayer.',
        ),
        Mistake(
            "always_post",
            _sums(pre="post"),
            'This is post-norm, whatever placement says. For "pre" the norm stands before the sublayer, beside the '
            "way around.",
        ),
        Mistake(
            "always_pre",
            _sums(post="pre"),
            'This is pre-norm, whatever placement says. For "post" the sum is normalised.',
        ),
        Mistake(
            "no_way_around",
            _sums("alone_pre", "alone_post"),
            "There is no way around the sublayer: x is not added.",
        ),
        Mistake(
            "no_way_around_pre",
            _sums(pre="alone_pre"),
            'For "pre" there is no way around the sublayer: x is not added.',
        ),
        Mistake(
            "no_way_around_post",
            _sums(post="alone_post"),
            'For "post" there is no way around the sublayer: x is not added.',
        ),
        Mistake(
            "residual_after_the_norm",
            _sums(pre="sum_normed_apart"),
            'For "pre" you add norm(x): your way around starts after the norm, so x itself is lost. Add x as it came.',
        ),
        Mistake(
            "residual_after_the_norm_in_both",
            _sums("sum_normed_apart", "sum_normed_apart"),
            "You add norm(x) to the sublayer of norm(x), whatever placement says. The way around starts at x itself.",
        ),
        Mistake(
            "x_normed",
            _sums(post="x_normed"),
            'For "post" you normalise x alone. The sum is normalised: norm(x + sublayer(x)).',
        ),
        Mistake(
            "output_normed",
            _sums(post="output_normed"),
            'For "post" you normalise what the sublayer returns, and then add. The sum is normalised.',
        ),
        Mistake(
            "output_normed_pre",
            _sums(pre="output_normed"),
            'For "pre" you normalise what the sublayer returns. The norm comes before it: sublayer(norm(x)).',
        ),
        Mistake(
            "output_normed_in_both",
            _sums("output_normed", "output_normed"),
            "You normalise what the sublayer returns, and nothing else. For pre-norm its input is normalised, for "
            "post-norm the sum.",
        ),
        Mistake(
            "norm_twice_pre",
            _sums(pre="output_normed_too"),
            'For "pre" you normalise what goes into the sublayer and what comes out. The first is enough.',
        ),
        Mistake(
            "sum_normed_too",
            _sums(pre="sum_normed_too"),
            'For "pre" you normalise the sum as well. Then nothing is left of pre-norm: the way around runs through '
            "a norm again.",
        ),
        Mistake(
            "both_norms_in_both",
            _sums("sum_normed_too", "sum_normed_too"),
            "You normalise the sublayer's input and the sum, whatever placement says. It is one or the other.",
        ),
        Mistake(
            "input_normed_too",
            _sums(post="sum_normed_too"),
            'For "post" you normalise the input of the sublayer as well. Only the sum is normalised.',
        ),
        Mistake(
            "norm_twice_post",
            _sums(post="twice"),
            'For "post" the norm is applied twice. A norm that has learned its weight and bias changes its own output.',
        ),
        Mistake(
            "no_norm",
            _sums("no_norm", "no_norm"),
            "The norm is never used.",
        ),
        Mistake(
            "no_norm_pre",
            _sums(pre="no_norm"),
            'For "pre" the norm is never used.',
        ),
        Mistake(
            "no_norm_post",
            _sums(post="no_norm"),
            'For "post" the norm is never used.',
        ),
        Mistake(
            "neither",
            _sums("alone", "alone"),
            "This is the sublayer alone: no norm, and no way around.",
        ),
    ),
    hints=(
        "Draw x, sublayer and norm as boxes. Where does the way around start, and where does it end?",
        "In both, something is added to x. Pre-norm: the norm is inside that something. Post-norm: it is around the sum.",
        '"pre": x + sublayer(norm(x)). "post": norm(x + sublayer(x)).',
    ),
)


# --- encoder_stack ---------------------------------------------------------------------------


def encoder_stack(x, mask, blocks, norm):
    for block in blocks:
        x = block(x, mask)
    return norm(x)


def _a_block(size, seed, number):
    """Attention, a matrix, and the way around both."""
    W = _drawn(size, size, seed=seed)

    def block(x, mask=None):
        return x + torch.tanh(scaled_dot_product_attention(x, x, x, mask).output @ W.to(x.dtype))

    return _Part(f"block {number}", block)


def _blocks(count, size, seed):
    return [_a_block(size, seed + number, number) for number in range(1, count + 1)]


def _climbed(x, mask, blocks, norm, *, between=None, masks=lambda mask, number: mask):
    for number, block in enumerate(blocks):
        x = block(x, masks(mask, number))
        x = x if between is None else between(x, norm)
    return x


def _normed(block, norm):
    return lambda x, mask: block(norm(x), mask)


def _added(block):
    return lambda x, mask: x + block(x, mask)


_STACK = Exercise(
    name="encoder_stack",
    notebook=_NOTEBOOK,
    title="Pre-norm blocks on top of each other, and what comes last",
    reference=lambda x, mask, blocks, norm: norm(_climbed(x, mask, blocks, norm)),
    solution=encoder_stack,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0], [0.5, -1.0]]]),
            mask=torch.tensor([[[True, False]]]),
            blocks=_blocks(2, 2, seed=19),
            norm=_a_norm(2, seed=24),
        ),
        Case(
            x=_drawn(2, 3, 4, seed=25),
            mask=padding_mask(torch.tensor([3, 2])),
            blocks=_blocks(3, 4, seed=26),
            norm=_a_norm(4, seed=30),
        ),
    ),
    mistakes=(
        Mistake(
            "no_final_norm",
            _climbed,
            "The final norm is missing. In pre-norm blocks nothing stands on the way around, so what comes out of "
            "the last block was never normalised and has grown with every block.",
        ),
        Mistake(
            "norm_after_every_block",
            partial(_climbed, between=lambda x, norm: norm(x)),
            "You normalise after every block. Then each way around runs through a norm. One norm, after the last "
            "block.",
        ),
        Mistake(
            "norm_after_every_block_and_last",
            lambda *a: a[3](_climbed(*a, between=lambda x, norm: norm(x))),
            "You normalise after every block, and once more at the end. One norm, after the last block.",
        ),
        Mistake(
            "norm_first",
            lambda x, mask, blocks, norm: _climbed(norm(x), mask, blocks, norm),
            "Your norm stands before the first block, which has one of its own inside. It belongs after the last.",
        ),
        Mistake(
            "norm_first_and_last",
            lambda x, mask, blocks, norm: norm(_climbed(norm(x), mask, blocks, norm)),
            "The norm after the last block is right. The one before the first is not needed: a pre-norm block has "
            "one of its own inside.",
        ),
        Mistake(
            "norm_before_every_block",
            lambda x, mask, blocks, norm: _climbed(
                x, mask, [_normed(b, norm) for b in blocks], norm
            ),
            "You normalise before every block, and nothing comes after the last. One norm, after the last block.",
        ),
        Mistake(
            "last_only",
            lambda x, mask, blocks, norm: norm(blocks[-1](x, mask)),
            "Every block of yours starts from the first x, and only the last one counts. Each goes on with what the "
            "one before returned: x = block(x, mask).",
        ),
        Mistake(
            "first_only",
            lambda x, mask, blocks, norm: norm(blocks[0](x, mask)),
            "You return after the first block. Is the return inside the loop?",
        ),
        Mistake(
            "reversed",
            lambda x, mask, blocks, norm: norm(_climbed(x, mask, blocks[::-1], norm)),
            "You go through the blocks from the last to the first.",
        ),
        Mistake(
            "added",
            lambda x, mask, blocks, norm: norm(sum(block(x, mask) for block in blocks)),
            "Your blocks stand side by side, and their outputs are added. They stand on top of each other: "
            "x = block(x, mask).",
        ),
        Mistake(
            "way_around_the_block",
            lambda x, mask, blocks, norm: norm(
                _climbed(x, mask, [_added(b) for b in blocks], norm)
            ),
            "You add x to what a block returns. The way around is inside the block already.",
        ),
        Mistake(
            "way_around_the_stack",
            lambda x, mask, blocks, norm: norm(x + _climbed(x, mask, blocks, norm)),
            "You add the first x at the end. The ways around are inside the blocks already.",
        ),
        Mistake(
            "no_mask",
            lambda x, mask, blocks, norm: norm(
                _climbed(x, mask, blocks, norm, masks=lambda mask, number: None)
            ),
            "You take the mask and never hand it on: every block looks at padding.",
        ),
        Mistake(
            "no_mask_and_no_norm",
            partial(_climbed, masks=lambda mask, number: None),
            "Two things are missing: the mask is not handed to the blocks, and no norm follows the last one.",
        ),
        Mistake(
            "mask_for_the_first",
            lambda x, mask, blocks, norm: norm(
                _climbed(x, mask, blocks, norm, masks=lambda mask, number: None if number else mask)
            ),
            "Only the first block gets the mask. The others look at padding.",
        ),
    ),
    hints=(
        "Each block goes on with what the one before returned.",
        "A pre-norm block returns x + something, and that sum is not normalised. What must come after the last one?",
        "x = block(x, mask) for each block in blocks, then return norm(x).",
    ),
)


# --- decoder_block ---------------------------------------------------------------------------


def decoder_block(x, memory, mask, memory_mask, self_attend, cross_attend, network, norms):
    x = x + self_attend(norms[0](x), mask)  # (batch, target, d_model)
    x = x + cross_attend(norms[1](x), memory, memory_mask)  # queries from x, keys from memory
    return x + network(norms[2](x))


def _attends(size, seed, name):
    """Single-head attention with matrices: of one sequence to itself, or to another."""
    W_q, W_k, W_v = _drawn(3, size, size, seed=seed)

    def attend(x, memory, mask):
        W = [W.to(x.dtype) for W in (W_q, W_k, W_v)]
        return scaled_dot_product_attention(x @ W[0], memory @ W[1], memory @ W[2], mask).output

    return _Part(name, attend)


def _decoder_parts(size, seed):
    own = _attends(size, seed, "")
    return {
        "self_attend": _Part("self-attention", lambda x, mask: own(x, x, mask)),
        "cross_attend": _attends(size, seed + 1, "cross-attention"),
        "network": _a_network(size, seed + 2),
        "norms": [_a_norm(size, seed + 3 + number, f"norm {number}") for number in range(3)],
    }


def _decoded(
    x,
    memory,
    mask,
    memory_mask,
    self_attend,
    cross_attend,
    network,
    norms,
    *,
    order="scn",
    norm_of=(0, 1, 2),
    around="scn",
    post="",
    memory_norm=None,
    hide=lambda mask, memory_mask: (mask, memory_mask),
    query="x",
    at_once=False,
):
    mask, memory_mask = hide(mask, memory_mask)
    n0, n1, n2 = (norms[number] if number is not None else (lambda x: x) for number in norm_of)
    memory = memory if memory_norm is None else norms[memory_norm](memory)
    steps = {
        "s": (n0, lambda x: self_attend(x, mask)),
        "c": (
            n1,
            {
                "x": lambda x: cross_attend(x, memory, memory_mask),
                "memory": lambda x: cross_attend(memory, x, memory_mask),
                "memory, no mask": lambda x: cross_attend(memory, x, None),
                "x twice": lambda x: cross_attend(x, x, memory_mask),
                "x twice, causal": lambda x: cross_attend(x, x, mask),
                "memory twice": lambda x: cross_attend(memory, memory, memory_mask),
            }[query],
        ),
        "n": (n2, network),
    }
    first = x
    for step in order:
        norm, part = steps[step]
        if step in post:
            x = norm(x + part(x))
        else:
            change = part(norm(first if at_once else x))
            x = x + change if step in around else change
    return x


_DECODER_BLOCK = Exercise(
    name="decoder_block",
    notebook=_NOTEBOOK,
    title="A decoder block: to itself, to the source, then the network",
    reference=_decoded,
    solution=decoder_block,
    cases=(
        Case(  # as many tokens in the target as in the source: nothing raises
            x=_short(1, 2, 2, seed=31),
            memory=_short(1, 2, 2, seed=32),
            mask=causal_mask(2),
            memory_mask=torch.tensor([[[False, True]]]),
            **_decoder_parts(2, seed=40),
        ),
        Case(
            x=_drawn(2, 3, 3, seed=33),
            memory=_drawn(2, 3, 3, seed=34),
            mask=causal_mask(3),
            memory_mask=padding_mask(torch.tensor([3, 1])),
            **_decoder_parts(3, seed=50),
        ),
        Case(
            x=_drawn(2, 3, 4, seed=35),
            memory=_drawn(2, 5, 4, seed=36),
            mask=causal_mask(3),
            memory_mask=padding_mask(torch.tensor([5, 2])),
            **_decoder_parts(4, seed=60),
        ),
    ),
    mistakes=(
        Mistake(
            "cross_first",
            partial(_decoded, order="csn"),
            "The order is exchanged: you look at the source first. The target looks at itself first, then at the "
            "source.",
        ),
        Mistake(
            "cross_first_with_norms",
            partial(_decoded, order="csn", norm_of=(1, 0, 2)),
            "The order is exchanged: you look at the source first, with the first norm. The target looks at itself "
            "first, then at the source.",
        ),
        Mistake(
            "network_between",
            partial(_decoded, order="snc"),
            "Your network stands before the cross-attention. It comes last.",
        ),
        Mistake(
            "network_between_with_norms",
            partial(_decoded, order="snc", norm_of=(0, 2, 1)),
            "Your network stands before the cross-attention, with the second norm. It comes last.",
        ),
        Mistake(
            "network_first",
            partial(_decoded, order="nsc"),
            "Your network comes first. It comes last.",
        ),
        Mistake(
            "memory_normed",
            partial(_decoded, memory_norm=1),
            "You normalise the memory too. The encoder's final norm has done so once, for all blocks; here only the "
            "queries are normalised.",
        ),
        Mistake(
            "only_memory_normed",
            partial(_decoded, memory_norm=1, norm_of=(0, None, 2)),
            "You normalise the memory in place of x. It came normalised; the queries did not.",
        ),
        Mistake(
            "masks_exchanged",
            partial(_decoded, hide=lambda mask, memory_mask: (memory_mask, mask)),
            "The masks are exchanged: your target looks ahead, and the source is hidden as if it were still to be "
            "written. Where both are of one length, nothing raises an error.",
        ),
        Mistake(
            "mask_twice",
            partial(_decoded, hide=lambda mask, memory_mask: (mask, mask)),
            "Your cross-attention gets the causal mask. The source is there as a whole; only its padding is hidden: "
            "memory_mask.",
        ),
        Mistake(
            "memory_mask_twice",
            partial(_decoded, hide=lambda mask, memory_mask: (memory_mask, memory_mask)),
            "Your self-attention gets memory_mask, so it looks ahead. It needs mask.",
        ),
        Mistake(
            "no_mask",
            partial(_decoded, hide=lambda mask, memory_mask: (None, memory_mask)),
            "Your self-attention gets no mask: a token sees those that come after it.",
        ),
        Mistake(
            "no_memory_mask",
            partial(_decoded, hide=lambda mask, memory_mask: (mask, None)),
            "Your cross-attention gets no mask: it looks at the source's padding.",
        ),
        Mistake(
            "no_masks",
            partial(_decoded, hide=lambda mask, memory_mask: (None, None)),
            "Both masks are taken and never handed on.",
        ),
        Mistake(
            "queries_from_memory",
            partial(_decoded, query="memory"),
            "Your queries come from the memory, so a row of weights belongs to a word of the source. The target "
            "asks: weights are (batch, target, source), and cross_attend takes x first.",
        ),
        Mistake(
            "queries_from_memory_no_mask",
            partial(_decoded, query="memory, no mask"),
            "Your queries come from the memory, and its mask is left out. The target asks: weights are "
            "(batch, target, source), and cross_attend takes x first.",
        ),
        Mistake(
            "memory_unused",
            partial(_decoded, query="x twice"),
            "Your cross-attention looks at x: the memory makes no difference.",
        ),
        Mistake(
            "memory_unused_causal",
            partial(_decoded, query="x twice, causal"),
            "Your second attention is a second self-attention, mask included: the memory makes no difference.",
        ),
        Mistake(
            "memory_to_itself",
            partial(_decoded, query="memory twice"),
            "Your cross-attention looks from the memory at the memory. The queries come from x.",
        ),
        Mistake(
            "post_norm",
            partial(_decoded, post="scn"),
            "This is post-norm: each sum is normalised. Here the norm stands before each part, beside the way around.",
        ),
        Mistake(
            "no_way_around",
            partial(_decoded, around=""),
            "There is no way around any of the three parts: x + …",
        ),
        Mistake(
            "no_way_around_self",
            partial(_decoded, around="cn"),
            "There is no way around the self-attention: x + self_attend(…).",
        ),
        Mistake(
            "no_way_around_cross",
            partial(_decoded, around="sn"),
            "There is no way around the cross-attention: x + cross_attend(…).",
        ),
        Mistake(
            "no_way_around_network",
            partial(_decoded, around="sc"),
            "There is no way around the network: x + network(…).",
        ),
        Mistake(
            "one_norm",
            partial(_decoded, norm_of=(0, 0, 0)),
            "You use the first norm three times. Each part has one of its own.",
        ),
        Mistake(
            "no_norms",
            partial(_decoded, norm_of=(None, None, None)),
            "The norms are never used.",
        ),
        Mistake(
            "cross_not_normed",
            partial(_decoded, norm_of=(0, None, 2)),
            "The queries of your cross-attention are not normalised: norms[1].",
        ),
        Mistake(
            "network_not_normed",
            partial(_decoded, norm_of=(0, 1, None)),
            "What goes into your network is not normalised: norms[2].",
        ),
        Mistake(
            "at_once",
            partial(_decoded, at_once=True),
            "All three parts work on the first x. Each goes on with what the one before left: x = x + …",
        ),
    ),
    hints=(
        "Three times the same form: x = x + part(norm(x)). In which order?",
        "Self-attention first. Cross-attention takes the queries, then the memory as it is, then its own mask.",
        "x = x + self_attend(norms[0](x), mask), then x = x + cross_attend(norms[1](x), memory, memory_mask), then "
        "the network.",
    ),
)


# --- bug hunts -------------------------------------------------------------------------------


def normed(x):
    class NormLayer(nn.Module):
        def __init__(self, d_model, eps=1e-5):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d_model))
            self.bias = nn.Parameter(torch.zeros(d_model))  # 1: it starts by shifting nothing
            self.eps = eps

        def forward(self, x):
            mean = x.mean(dim=-1, keepdim=True)
            variance = x.var(dim=-1, keepdim=True, correction=0)  # 2: divided by d
            spread = torch.sqrt(variance + self.eps)  # 3: eps inside the root
            return self.weight * (x - mean) / spread + self.bias

    return NormLayer(x.shape[-1])(x)


class _GivenNormLayer(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        spread = x.std(dim=-1, keepdim=True) + self.eps
        return self.weight * (x - mean) / spread + self.bias


def _given_normed(x):
    return _GivenNormLayer(x.shape[-1])(x)


#: Symptom by what is left of the three bugs.
_LEFT = {
    "bias": {0.0: "", 1.0: "the numbers of a new layer's output have mean 1"},
    "ddof": {0: "", 1: "their variance is below 1, most of all for short vectors"},
    "eps_at": {"inside": "", "outside": "a vector of nearly equal numbers is blown up"},
}
_NUMBERS = ("None", "One", "Two")


def _partly_normed(x, *, bias, ddof, eps_at):
    return _normal(x, 1e-5, ddof=ddof, eps_at=eps_at) + bias


def _count(**left):
    """How many are repaired, and the symptoms of the rest."""
    symptoms = [_LEFT[part][which] for part, which in left.items() if _LEFT[part][which]]
    return f"{_NUMBERS[3 - len(symptoms)]} of three repaired. Still wrong: {'; '.join(symptoms)}."


_ALL_RIGHT, _NONE_REPAIRED = (0.0, 0, "inside"), (1.0, 1, "outside")

_HUNT_NORM_LAYER = Exercise(
    name="hunt_norm_layer",
    notebook=_NOTEBOOK,
    title="Bug hunt: three bugs in one layer norm",
    reference=lambda x: LayerNorm(x.shape[-1])(x),
    solution=normed,
    cases=(
        Case(x=torch.tensor([[1.0, 2.0, 6.0], [0.003, -0.001, 0.004]])),
        Case(x=_drawn(2, 3, 4, seed=70) + 2),
        Case(x=_drawn(3, 2, 7, seed=71) / 200),
    ),
    mistakes=(
        *(
            Mistake(
                "left: "
                + ", ".join(
                    part for part, which in zip(_LEFT, left, strict=True) if _LEFT[part][which]
                ),
                partial(_partly_normed, **dict(zip(_LEFT, left, strict=True))),
                _count(**dict(zip(_LEFT, left, strict=True))),
            )
            for left in product(*_LEFT.values())
            if left not in (_ALL_RIGHT, _NONE_REPAIRED)
        ),
        Mistake(
            "no_eps",
            partial(_partly_normed, bias=0.0, ddof=0, eps_at="nowhere"),
            "Nothing of the three is left. But your epsilon is gone: a vector of equal numbers would be divided by 0.",
        ),
        Mistake(
            "weight_at_zero",
            lambda x: torch.zeros_like(x),
            "Your weight starts at zero, so a new layer returns nothing but zeros. It was right at one; it is the "
            "bias that must start at zero.",
        ),
        Mistake(
            "not_centred",
            lambda x: _normal(x, 1e-5, centred=""),
            "Your mean is never subtracted. It was; the bugs lie elsewhere.",
        ),
    ),
    hints=(
        "Make a new layer, and give it a vector. Which mean and which variance should come out?",
        "What does x.std divide by? And what becomes of torch.tensor([0.003, -0.001, 0.004])?",
        "The bias starts at zeros; x.var(dim=-1, keepdim=True, correction=0); torch.sqrt(variance + self.eps).",
    ),
    given=_given_normed,
    given_says=_count(**dict(zip(_LEFT, _NONE_REPAIRED, strict=True))),
)


def after_one_step(x, change, target):
    class AddNorm(nn.Module):
        def __init__(self, d_model):
            super().__init__()
            self.norm = nn.LayerNorm(d_model)  # made once, and registered

        def forward(self, x, change):
            return self.norm(x + change)

    layer = AddNorm(x.shape[-1])
    F.mse_loss(layer(x, change), target).backward()
    with torch.no_grad():
        for parameter in layer.parameters():
            if parameter.grad is not None:
                parameter -= 0.5 * parameter.grad
        return layer(x, change)


def _given_after_one_step(x, change, target):
    class AddNorm(nn.Module):
        def __init__(self, d_model):
            super().__init__()
            self.d_model = d_model

        def forward(self, x, change):
            norm = nn.LayerNorm(self.d_model)
            return norm(x + change)

    layer = AddNorm(x.shape[-1])
    F.mse_loss(layer(x, change), target).backward()
    with torch.no_grad():
        for parameter in layer.parameters():
            if parameter.grad is not None:
                parameter -= 0.5 * parameter.grad
        return layer(x, change)


def _stepped(
    x,
    change,
    target,
    *,
    forward=lambda norm, x, change: norm(x + change),
    make=nn.LayerNorm,
    trained=lambda norm: norm.parameters(),
):
    """One step of whatever adds and normalises by `forward`."""
    norm = make(x.shape[-1])
    F.mse_loss(forward(norm, x, change), target).backward()
    with torch.no_grad():
        for parameter in trained(norm):
            if parameter.grad is not None:
                parameter -= 0.5 * parameter.grad
        return forward(norm, x, change)


_HUNT_NEW_NORM = Exercise(
    name="hunt_new_norm",
    notebook=_NOTEBOOK,
    title="Bug hunt: a norm that forgets what it learned",
    reference=partial(_stepped, make=LayerNorm),
    solution=after_one_step,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]]]),
            change=torch.tensor([[[0.5, -1.0, 2.0], [1.0, 1.0, -0.5]]]),
            target=torch.tensor([[[3.0, 0.0, -2.0], [1.0, 4.0, -3.0]]]),
        ),
        Case(
            x=_drawn(2, 4, 5, seed=72),
            change=_drawn(2, 4, 5, seed=73),
            target=3 * _drawn(2, 4, 5, seed=74) + 2,
        ),
    ),
    mistakes=(
        Mistake(
            "weight_stands_still",
            partial(_stepped, trained=lambda norm: [norm.bias]),
            "Your bias learns now, and the weight does not. Was it left out, or is it no nn.Parameter?",
        ),
        Mistake(
            "bias_stands_still",
            partial(_stepped, trained=lambda norm: [norm.weight]),
            "Your weight learns now, and the bias does not. Was it left out, or is it no nn.Parameter?",
        ),
        Mistake(
            "norm_of_change",
            partial(_stepped, forward=lambda norm, x, change: x + norm(change)),
            "It learns now. But you normalise the change alone, and then add. The sum is normalised.",
        ),
        Mistake(
            "norm_of_x",
            partial(_stepped, forward=lambda norm, x, change: norm(x) + change),
            "It learns now. But you normalise x alone, and then add. The sum is normalised.",
        ),
        Mistake(
            "no_way_around",
            partial(_stepped, forward=lambda norm, x, change: norm(change)),
            "It learns now. But x is lost: the sum x + change is normalised.",
        ),
        Mistake(
            "no_change",
            partial(_stepped, forward=lambda norm, x, change: norm(x)),
            "It learns now. But the change is lost: the sum x + change is normalised.",
        ),
        Mistake(
            "norm_twice",
            partial(_stepped, forward=lambda norm, x, change: norm(norm(x + change))),
            "It learns now. But the norm is applied twice.",
        ),
        Mistake(
            "root_mean_square",
            partial(_stepped, make=lambda size: nn.RMSNorm(size, eps=1e-5)),
            "It learns now. But RMSNorm is another norm: it does not subtract the mean, and has no bias.",
        ),
        Mistake(
            "two_norms",
            lambda x, change, target: _stepped(
                x,
                change,
                target,
                make=lambda size: nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)]),
                forward=lambda norms, x, change: norms[1](norms[0](x) + change),
            ),
            "It learns now. But there are two norms: x is normalised, and then the sum. Only the sum is.",
        ),
    ),
    hints=(
        "Print len(list(AddNorm(3).parameters())). How many should there be?",
        "How often does the line that makes the LayerNorm run, and what does a new one hold?",
        "Make the norm once, in __init__: self.norm = nn.LayerNorm(d_model). In forward, use self.norm.",
    ),
    given=_given_after_one_step,
    given_says="After a step of training the layer returns what it returned before. The bug is still there.",
    differentiable=False,
)


def through_two(x, keep, p, training):
    class Drop(nn.Module):
        def __init__(self, keep, p):
            super().__init__()
            self.keep, self.p = keep, p

        def forward(self, x):
            if self.training:  # the switch that train() and eval() turn
                x = x * self.keep / (1 - self.p)
            return x

    model = nn.Sequential(Drop(keep, p), nn.Tanh(), Drop(keep, p))
    return model.train(training)(x)


def _given_through_two(x, keep, p, training):
    class Drop(nn.Module):
        def __init__(self, keep, p):
            super().__init__()
            self.keep, self.p = keep, p

        def forward(self, x, apply_dropout=True):
            if apply_dropout:
                x = x * self.keep / (1 - self.p)
            return x

    model = nn.Sequential(Drop(keep, p), nn.Tanh(), Drop(keep, p))
    return model.train(training)(x)


def _switched(x, keep, p, training, *, on=None, off=None):
    """Twice what happens in training, or what happens after it."""
    on = on or (lambda x, keep, p: x * keep / (1 - p))
    off = off or (lambda x, keep, p: x)
    drop = on if training else off
    return drop(torch.tanh(drop(x, keep, p)), keep, p)


_KEEP = torch.tensor([[True, False, True], [True, True, False]])

_HUNT_SWITCHES = Exercise(
    name="hunt_switches",
    notebook=_NOTEBOOK,
    title="Bug hunt: two switches for one light",
    reference=_switched,
    solution=through_two,
    cases=(
        Case(
            x=torch.tensor([[1.0, 2.0, -0.5], [0.5, -1.0, 0.2]]), keep=_KEEP, p=0.25, training=False
        ),
        Case(
            x=torch.tensor([[1.0, 2.0, -0.5], [0.5, -1.0, 0.2]]), keep=_KEEP, p=0.25, training=True
        ),
        Case(
            x=_drawn(2, 3, 4, seed=75), keep=_drawn(2, 3, 4, seed=76) > -0.8, p=0.2, training=True
        ),
        Case(
            x=_drawn(2, 4, 5, seed=77), keep=_drawn(2, 4, 5, seed=78) > -0.8, p=0.4, training=False
        ),
    ),
    mistakes=(
        Mistake(
            "always_off",
            partial(_switched, on=lambda x, keep, p: x),
            "Now nothing is dropped in training either. A default of False is the same flag the other way round: "
            "ask self.training.",
        ),
        Mistake(
            "upside_down",
            lambda x, keep, p, training: _switched(x, keep, p, not training),
            "The switch is turned around: you drop in evaluation, and not in training.",
        ),
        Mistake(
            "no_rescale",
            partial(_switched, on=lambda x, keep, p: x * keep),
            "The switch is right now. But what is kept must grow by 1 / (1 - p), as it did.",
        ),
        Mistake(
            "times",
            partial(_switched, on=lambda x, keep, p: x * keep * (1 - p)),
            "The switch is right now. But you multiply by 1 - p; divide.",
        ),
        Mistake(
            "scaled_in_evaluation",
            partial(_switched, on=lambda x, keep, p: x * keep, off=lambda x, keep, p: x * (1 - p)),
            "You drop without rescaling and shrink in evaluation. Dropout began like that, and on average it is the "
            "same. Here what is kept grows in training, and evaluation changes nothing.",
        ),
        Mistake(
            "scaled_in_both",
            partial(_switched, off=lambda x, keep, p: x * (1 - p)),
            "You rescale in training and shrink in evaluation. One of them is enough: evaluation changes nothing.",
        ),
        Mistake(
            "grown_in_evaluation",
            partial(_switched, off=lambda x, keep, p: x / (1 - p)),
            "In evaluation nothing is dropped now, but everything still grows by 1 / (1 - p).",
        ),
        Mistake(
            "shrunk_after_dropping",
            partial(_switched, off=lambda x, keep, p: x * keep),
            "In evaluation you no longer rescale, but you still drop.",
        ),
    ),
    hints=(
        "Print the output with training=True and with training=False.",
        "Who sets apply_dropout? nn.Sequential calls its layers with x alone. And what do train() and eval() set?",
        "Every nn.Module has self.training. Ask that, and take the second switch away.",
    ),
    given=_given_through_two,
)

EXERCISES = (
    _HUNT_NORM_LAYER,
    _HUNT_NEW_NORM,
    _HUNT_SWITCHES,
    _LAYER_NORM,
    _FEED_FORWARD,
    _ADD_AND_NORM,
    _STACK,
    _DECODER_BLOCK,
)
