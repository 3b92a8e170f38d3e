"""Exercise `encoder_block` of notebook 07."""

from functools import partial

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import (
    random_attention,
    random_network,
    trained_norm,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import padding_mask


def encoder_block(x, mask, self_attend, feed_forward, norms, placement):
    if placement == "pre":
        x = x + self_attend(norms[0](x), mask)  # (batch, length, d_model)
        return x + feed_forward(norms[1](x))
    x = norms[0](x + self_attend(x, mask))
    return norms[1](x + feed_forward(x))


#: One sublayer f with its norm n, as it may be assembled.
_FORMS = {
    "pre": lambda x, f, n: x + f(n(x)),
    "post": lambda x, f, n: n(x + f(x)),
    "residual after the norm": lambda x, f, n: n(x) + f(n(x)),
    "x normed": lambda x, f, n: n(x) + f(x),
    "output normed": lambda x, f, n: x + n(f(x)),
    "sum normed too": lambda x, f, n: n(x + f(n(x))),
    "alone, pre": lambda x, f, n: f(n(x)),
    "alone, post": lambda x, f, n: n(f(x)),
    "no norm": lambda x, f, n: x + f(x),
}


def _run_block(
    x,
    mask,
    self_attend,
    feed_forward,
    norms,
    placement,
    *,
    pre=("pre", "pre"),
    post=("post", "post"),
    order=(0, 1),
    norm_of=(0, 1),
    masked=True,
    parallel=False,
    stale=(),
):
    """Run the block; `pre` and `post` are the forms of both sublayers for each placement."""
    forms = {"pre": pre, "post": post}[placement]
    mask = {True: mask, False: None, "inverted": ~mask}[masked]
    attend = partial(lambda mask, x: self_attend(x, mask), mask)
    sublayers = (attend, feed_forward)
    if parallel and placement == "pre":
        return x + attend(norms[0](x)) + feed_forward(norms[1](x))
    if parallel == "both":
        return norms[1](norms[0](x + attend(x)) + feed_forward(x))
    if placement in stale:
        h = _FORMS[placement](x, attend, norms[0])
        if placement == "pre":
            return x + feed_forward(norms[1](h))
        return norms[1](x + feed_forward(h))
    for number in order:
        x = _FORMS[forms[number]](x, sublayers[number], norms[norm_of[number]])
    return x


def _both(form):
    return {"pre": (form, form), "post": (form, form)}


def _parts(size, seed):
    return {
        "self_attend": random_attention(size, seed, "self-attention"),
        "feed_forward": random_network(size, seed + 1, "the FFN"),
        "norms": [trained_norm(size, seed + 2 + number, f"norm {number}") for number in range(2)],
    }


def _faults_of_one_sublayer():
    """A sublayer without its norm or its residual connection, for one placement or for both."""
    for number, sublayer in enumerate(("self-attention", "FFN")):
        for fault, forms, says in (
            (
                "no norm",
                {"pre": "no norm", "post": "no norm"},
                "the norm of the {} is missing: norms[{}] is never used",
            ),
            (
                "no residual",
                {"pre": "alone, pre", "post": "alone, post"},
                "the {} has no residual connection",
            ),
        ):
            for placements in (("pre",), ("post",), ("pre", "post")):
                if fault == "no residual" and len(placements) == 2:
                    continue  # listed above
                wrong = {}
                for placement in placements:
                    wrong[placement] = [placement, placement]
                    wrong[placement][number] = forms[placement]
                text = says.format(sublayer, number)
                where = f'For "{placements[0]}" ' if len(placements) == 1 else ""
                yield Mistake(
                    f"{fault}, {sublayer}, {' and '.join(placements)}",
                    partial(_run_block, **wrong),
                    f"{where}{text}." if where else f"{text[0].upper()}{text[1:]}.",
                )


def _final_norm(x, mask, self_attend, feed_forward, norms, placement, *, which):
    out = _run_block(x, mask, self_attend, feed_forward, norms, placement)
    return norms[which](out) if placement == "pre" else out


EXERCISE = Exercise(
    name="encoder_block",
    notebook="07_transformer_blocks",
    title="An encoder block, pre-norm or post-norm",
    reference=_run_block,
    solution=encoder_block,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0, -1.0], [0.0, 3.0, 1.0]]]),
            mask=torch.tensor([[[True, False]]]),
            **_parts(3, seed=80),
            placement="pre",
        ),
        Case(
            x=torch.tensor([[[1.0, 2.0, -1.0], [0.0, 3.0, 1.0]]]),
            mask=torch.tensor([[[True, False]]]),
            **_parts(3, seed=80),
            placement="post",
        ),
        Case(
            x=random_tensor(2, 3, 4, seed=90),
            mask=padding_mask(torch.tensor([3, 2])),
            **_parts(4, seed=91),
            placement="post",
        ),
        Case(
            x=random_tensor(2, 5, 4, seed=95),
            mask=padding_mask(torch.tensor([5, 3])),
            **_parts(4, seed=96),
            placement="pre",
        ),
    ),
    mistakes=(
        Mistake(
            "exchanged",
            partial(_run_block, pre=("post", "post"), post=("pre", "pre")),
            "The two placements are exchanged. In pre-norm the norm comes before the sublayer, inside the residual "
            "branch; in post-norm it comes after the sum.",
        ),
        Mistake(
            "always_post",
            partial(_run_block, pre=("post", "post")),
            'This is post-norm, whatever placement says. For "pre", normalise the input of the sublayer: '
            "x + sublayer(norm(x)).",
        ),
        Mistake(
            "always_pre",
            partial(_run_block, post=("pre", "pre")),
            'This is pre-norm, whatever placement says. For "post", normalise the sum: norm(x + sublayer(x)).',
        ),
        Mistake(
            "no_residual",
            partial(_run_block, pre=("alone, pre",) * 2, post=("alone, post",) * 2),
            "The residual connections are missing: x is never added to the output of a sublayer.",
        ),
        Mistake(
            "no_residual_pre",
            partial(_run_block, pre=("alone, pre",) * 2),
            'For "pre" the residual connections are missing: x is never added.',
        ),
        Mistake(
            "no_residual_post",
            partial(_run_block, post=("alone, post",) * 2),
            'For "post" the residual connections are missing: x is never added.',
        ),
        Mistake(
            "no_residual_attention",
            partial(_run_block, pre=("alone, pre", "pre"), post=("alone, post", "post")),
            "The self-attention has no residual connection.",
        ),
        Mistake(
            "no_residual_ffn",
            partial(_run_block, pre=("pre", "alone, pre"), post=("post", "alone, post")),
            "The FFN has no residual connection.",
        ),
        Mistake(
            "residual_after_the_norm",
            partial(_run_block, pre=("residual after the norm",) * 2),
            'For "pre" you add norm(x) to the output of the sublayer. The residual connection starts before the '
            "norm: add x itself.",
        ),
        Mistake(
            "x_normed",
            partial(_run_block, post=("x normed",) * 2),
            'For "post" you normalise x alone. Normalise the sum: norm(x + sublayer(x)).',
        ),
        Mistake(
            "output_normed",
            partial(_run_block, post=("output normed",) * 2),
            'For "post" you normalise the output of the sublayer and then add x. Normalise the sum.',
        ),
        Mistake(
            "output_normed_pre",
            partial(_run_block, pre=("output normed",) * 2),
            'For "pre" you normalise the output of the sublayer. Normalise its input: sublayer(norm(x)).',
        ),
        Mistake(
            "sum_normed_too",
            partial(_run_block, pre=("sum normed too",) * 2),
            'For "pre" you normalise the sum as well, so the residual stream passes through a norm. Normalise the '
            "input of the sublayer only.",
        ),
        Mistake(
            "input_normed_too",
            partial(_run_block, post=("sum normed too",) * 2),
            'For "post" you normalise the input of the sublayer as well. Normalise the sum only.',
        ),
        Mistake(
            "no_norm",
            partial(_run_block, **_both("no norm")),
            "The norms are never used.",
        ),
        Mistake(
            "one_norm",
            partial(_run_block, norm_of=(0, 0)),
            "You use norms[0] twice. Each sublayer has a norm with its own learned weight and bias.",
        ),
        Mistake(
            "norms_exchanged",
            partial(_run_block, norm_of=(1, 0)),
            "The norms are exchanged: norms[0] belongs to the self-attention, norms[1] to the FFN.",
        ),
        Mistake(
            "ffn_first",
            partial(_run_block, order=(1, 0)),
            "The order is exchanged: self-attention comes first, then the FFN.",
        ),
        Mistake(
            "no_mask",
            partial(_run_block, masked=False),
            "You do not pass the mask to the self-attention, so tokens attend to padding.",
        ),
        Mistake(
            "parallel",
            partial(_run_block, parallel=True),
            'For "pre" both sublayers get the same x. The FFN continues with the output of the attention sublayer: '
            "x = x + …, twice. (GPT-J computes both in parallel; the Transformer of 2017 does not.)",
        ),
        Mistake(
            "ffn_forgotten",
            partial(_run_block, order=(0,)),
            "The FFN is never used.",
        ),
        *_faults_of_one_sublayer(),
        Mistake(
            "residual_of_the_input",
            partial(_run_block, stale=("pre", "post")),
            "The residual connection of your FFN starts at the input of the block, so the output of the self-attention is "
            "lost from the sum. It starts at the sum before it: x = x + …, twice.",
        ),
        Mistake(
            "residual_of_the_input_pre",
            partial(_run_block, stale=("pre",)),
            'For "pre" the residual connection of your FFN starts at the input of the block. It starts at the sum before it.',
        ),
        Mistake(
            "ffn_first_with_norms",
            partial(_run_block, order=(1, 0), norm_of=(1, 0)),
            "The order is exchanged: your FFN comes first, with norms[0]. Self-attention comes first, then the FFN.",
        ),
        Mistake(
            "final_norm",
            partial(_final_norm, which=1),
            'For "pre" you apply a norm once more at the end. The output of a pre-norm block is a sum that is not normalised.',
        ),
        Mistake(
            "first_norm_at_the_end",
            partial(_final_norm, which=0),
            'For "pre" you apply a norm once more at the end. The output of a pre-norm block is a sum that is not normalised.',
        ),
        Mistake(
            "parallel_in_both",
            partial(_run_block, parallel="both"),
            "Both sublayers get the same x. The FFN continues with the output of the attention sublayer: x = x + …, twice.",
        ),
        Mistake(
            "mask_inverted",
            partial(_run_block, masked="inverted"),
            "You invert the mask, so tokens attend to padding only. self_attend takes True = may attend: pass it as it is.",
        ),
        Mistake(
            "attention_forgotten",
            partial(_run_block, order=(1,)),
            "The self-attention is never used.",
        ),
        Mistake(
            "one_norm_second",
            partial(_run_block, norm_of=(1, 1)),
            "You use norms[1] twice. Each sublayer has a norm with its own learned weight and bias.",
        ),
        Mistake(
            "norms_in_the_stream",
            lambda x, mask, self_attend, feed_forward, norms, placement: _run_block(
                x,
                mask,
                self_attend,
                feed_forward,
                norms,
                "pre",
                pre=("residual after the norm",) * 2,
            ),
            "Whatever placement says, x itself is replaced by norm(x), so each residual connection starts after the norm. "
            '"pre" is x + sublayer(norm(x)), "post" is norm(x + sublayer(x)).',
        ),
        *(
            Mistake(
                f"norms_exchanged_for_{name}",
                lambda *a, name=name: _run_block(*a, norm_of=(1, 0) if a[-1] == name else (0, 1)),
                f'For "{name}" the norms are exchanged: norms[0] belongs to the self-attention, norms[1] to the FFN.',
            )
            for name in ("pre", "post")
        ),
    ),
    hints=(
        "Two sublayers, one after the other. Both have the same form; the form depends on placement.",
        'The form is x + sublayer(norm(x)) for "pre" and norm(x + sublayer(x)) for "post". The sublayers are '
        "self_attend(…, mask) with norms[0] and feed_forward(…) with norms[1].",
        'For "pre": x = x + self_attend(norms[0](x), mask), then return x + feed_forward(norms[1](x)).',
    ),
)
