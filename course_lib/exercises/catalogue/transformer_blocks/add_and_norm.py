"""Exercise `add_and_norm` of notebook 07."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import random_network, trained_norm
from course_lib.exercises.exercise import Case, Exercise, Mistake


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


def _sum_by_placement(pre="pre", post="post"):
    return lambda x, f, n, placement: _SUMS[{"pre": pre, "post": post}[placement]](x, f, n)


EXERCISE = Exercise(
    name="add_and_norm",
    notebook="07_transformer_blocks",
    title="Residual connection with pre-norm or post-norm",
    reference=_sum_by_placement(),
    solution=add_and_norm,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0, -0.5]]]),
            sublayer=random_network(3, seed=11),
            norm=trained_norm(3, seed=12),
            placement="pre",
        ),
        Case(
            x=torch.tensor([[[1.0, 2.0, -0.5]]]),
            sublayer=random_network(3, seed=11),
            norm=trained_norm(3, seed=12),
            placement="post",
        ),
        Case(
            x=random_tensor(2, 3, 4, seed=13),
            sublayer=random_network(4, seed=14),
            norm=trained_norm(4, seed=15),
            placement="post",
        ),
        Case(
            x=random_tensor(2, 4, 5, seed=16),
            sublayer=random_network(5, seed=17),
            norm=trained_norm(5, seed=18),
            placement="pre",
        ),
    ),
    mistakes=(
        Mistake(
            "exchanged",
            _sum_by_placement("post", "pre"),
            "The two are exchanged: under the name of pre-norm you compute post-norm, and the other way round. "
            '"pre" says that the norm comes before the sublayer.',
        ),
        Mistake(
            "always_post",
            _sum_by_placement(pre="post"),
            'This is post-norm, whatever placement says. For "pre" the norm stands before the sublayer, beside the '
            "residual connection.",
        ),
        Mistake(
            "always_pre",
            _sum_by_placement(post="pre"),
            'This is pre-norm, whatever placement says. For "post" the sum is normalised.',
        ),
        Mistake(
            "no_way_around",
            _sum_by_placement("alone_pre", "alone_post"),
            "The residual connection is missing: x is not added.",
        ),
        Mistake(
            "no_way_around_pre",
            _sum_by_placement(pre="alone_pre"),
            'For "pre" the residual connection is missing: x is not added.',
        ),
        Mistake(
            "no_way_around_post",
            _sum_by_placement(post="alone_post"),
            'For "post" the residual connection is missing: x is not added.',
        ),
        Mistake(
            "residual_after_the_norm",
            _sum_by_placement(pre="sum_normed_apart"),
            'For "pre" you add norm(x): your residual connection starts after the norm, so x itself is lost. Add x as it came.',
        ),
        Mistake(
            "residual_after_the_norm_in_both",
            _sum_by_placement("sum_normed_apart", "sum_normed_apart"),
            "You add norm(x) to the sublayer of norm(x), whatever placement says. The residual connection starts at x itself.",
        ),
        Mistake(
            "x_normed",
            _sum_by_placement(post="x_normed"),
            'For "post" you normalise x alone. The sum is normalised: norm(x + sublayer(x)).',
        ),
        Mistake(
            "output_normed",
            _sum_by_placement(post="output_normed"),
            'For "post" you normalise what the sublayer returns, and then add. The sum is normalised.',
        ),
        Mistake(
            "output_normed_pre",
            _sum_by_placement(pre="output_normed"),
            'For "pre" you normalise what the sublayer returns. The norm comes before it: sublayer(norm(x)).',
        ),
        Mistake(
            "output_normed_in_both",
            _sum_by_placement("output_normed", "output_normed"),
            "You normalise what the sublayer returns, and nothing else. For pre-norm its input is normalised, for "
            "post-norm the sum.",
        ),
        Mistake(
            "norm_twice_pre",
            _sum_by_placement(pre="output_normed_too"),
            'For "pre" you normalise what goes into the sublayer and what comes out. The first is enough.',
        ),
        Mistake(
            "sum_normed_too",
            _sum_by_placement(pre="sum_normed_too"),
            'For "pre" you normalise the sum as well. Then nothing is left of pre-norm: the residual connection runs through '
            "a norm again.",
        ),
        Mistake(
            "both_norms_in_both",
            _sum_by_placement("sum_normed_too", "sum_normed_too"),
            "You normalise the sublayer's input and the sum, whatever placement says. It is one or the other.",
        ),
        Mistake(
            "input_normed_too",
            _sum_by_placement(post="sum_normed_too"),
            'For "post" you normalise the input of the sublayer as well. Only the sum is normalised.',
        ),
        Mistake(
            "norm_twice_post",
            _sum_by_placement(post="twice"),
            'For "post" the norm is applied twice. A norm that has learned its weight and bias changes its own output.',
        ),
        Mistake(
            "no_norm",
            _sum_by_placement("no_norm", "no_norm"),
            "The norm is never used.",
        ),
        Mistake(
            "no_norm_pre",
            _sum_by_placement(pre="no_norm"),
            'For "pre" the norm is never used.',
        ),
        Mistake(
            "no_norm_post",
            _sum_by_placement(post="no_norm"),
            'For "post" the norm is never used.',
        ),
        Mistake(
            "neither",
            _sum_by_placement("alone", "alone"),
            "This is the sublayer alone: no norm, and no residual connection.",
        ),
    ),
    hints=(
        "Draw x, sublayer and norm as boxes. Where does the residual connection start, and where does it end?",
        "In both, something is added to x. Pre-norm: the norm is inside that something. Post-norm: it is around the sum.",
        '"pre": x + sublayer(norm(x)). "post": norm(x + sublayer(x)).',
    ),
)
