"""Exercise `causal` of notebook 02."""

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask


def causal(query_length, key_length):
    queries = torch.arange(query_length)[:, None] + (key_length - query_length)  # their positions
    keys = torch.arange(key_length)[None, :]
    return keys <= queries  # (query, key): its own position and those before


def _lower_triangle(m, n, diagonal):
    return torch.ones(m, n, dtype=torch.bool).tril(diagonal)


EXERCISE = Exercise(
    name="causal",
    notebook="02_scoring_functions",
    title="A causal mask, also with fewer queries than keys",
    reference=lambda query_length, key_length: causal_mask(query_length, key_length),
    solution=causal,
    cases=(
        Case(query_length=3, key_length=3),
        Case(query_length=3, key_length=4),
        Case(query_length=2, key_length=5),
        Case(query_length=1, key_length=4),
    ),
    mistakes=(
        Mistake(
            "excludes_diagonal",
            lambda m, n: _lower_triangle(m, n, n - m - 1),
            "Your mask excludes the diagonal: a query attends to its own position too. The first row is fully masked now.",
        ),
        Mistake(
            "allows_next",
            lambda m, n: _lower_triangle(m, n, n - m + 1),
            "Off by one: each query attends to the position after its own, which the model is to predict.",
        ),
        Mistake(
            "upper_triangle",
            lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(n - m),
            "Upper triangle instead of lower: your queries attend to their own and to later positions, and earlier ones are masked.",
        ),
        Mistake(
            "inverted",
            lambda m, n: ~_lower_triangle(m, n, n - m),
            "True and False are swapped: in this course True means 'may attend'.",
        ),
        Mistake(
            "inverted_and_offset",
            lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(1),
            "torch.triu(…, 1) is True where a pair is masked, as nn.MultiheadAttention expects. Here True means 'may attend'. And "
            "with fewer queries than keys, the queries are the last ones.",
        ),
        Mistake(
            "upper_triangle_and_offset",
            lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(),
            "Upper triangle instead of lower: your queries attend to later positions. Keep the lower triangle, and let the last "
            "query attend to every key.",
        ),
        Mistake(
            "excludes_diagonal_and_offset",
            lambda m, n: _lower_triangle(m, n, -1),
            "Your mask excludes the diagonal: a query attends to its own position too. And with fewer queries than keys, "
            "the queries are the last ones.",
        ),
        Mistake(
            "sign_of_diagonal",
            lambda m, n: _lower_triangle(m, n, m - n),
            "The sign of the diagonal is swapped: with more keys than queries the diagonal moves to the right.",
        ),
        Mistake(
            "top_left",
            lambda m, n: _lower_triangle(m, n, 0),
            "Right for as many queries as keys. With fewer queries than keys, the queries are the last ones: "
            "the last query attends to every key.",
        ),
        *(
            Mistake(
                f"dtype_{name}",
                lambda m, n, dtype=dtype: _lower_triangle(m, n, n - m).to(dtype),
                "The pattern is right, but not the dtype. The mask must be boolean: torch.ones(…, dtype=torch.bool), or "
                ".bool() at the end.",
            )
            for name, dtype in {"float": torch.float32, "int": torch.int64}.items()
        ),
        *(
            Mistake(
                f"dtype_{name}_top_left",
                lambda m, n, dtype=dtype: _lower_triangle(m, n, 0).to(dtype),
                "The mask must be boolean: torch.ones(…, dtype=torch.bool). And with fewer queries than keys, the queries "
                "are the last ones: the last query attends to every key.",
            )
            for name, dtype in {"float": torch.float32, "int": torch.int64}.items()
        ),
        Mistake(
            "additive",
            lambda m, n: torch.zeros(m, n).masked_fill(~_lower_triangle(m, n, n - m), -torch.inf),
            "This is an additive mask, 0 where a pair is allowed and -inf elsewhere. Return the boolean mask: True = may "
            "attend.",
        ),
        Mistake(
            "keys_in_rows",
            lambda m, n: torch.ones(n, m, dtype=torch.bool).triu(m - n),
            "The numbers are right, but the axes are exchanged: yours is (key, query). Return (query, key).",
        ),
        Mistake(
            "keys_in_rows_and_lower",
            lambda m, n: _lower_triangle(n, m, n - m),
            "The axes are exchanged: your mask has one row per key. Return (query, key): torch.ones(query_length, "
            "key_length, …).",
        ),
        Mistake(
            "square_of_queries",
            lambda m, n: _lower_triangle(m, m, 0),
            "Your mask is square, (query, query). There are key_length columns, and the queries are the last positions.",
        ),
        Mistake(
            "square_of_keys",
            lambda m, n: _lower_triangle(n, n, 0),
            "Your mask is square, (key, key). Keep the last query_length rows: those are the positions of the queries.",
        ),
        Mistake(
            "everything",
            lambda m, n: torch.ones(m, n, dtype=torch.bool),
            "Every query may attend to every key, also to later ones. Keep the lower triangle.",
        ),
        Mistake(
            "own_positions_only",
            lambda m, n: _lower_triangle(m, n, n - m) & (torch.arange(n) >= n - m),
            "The keys before the first query are masked. Each query attends to all positions up to its own.",
        ),
        Mistake(
            "diagonal",
            lambda m, n: _lower_triangle(m, n, n - m) & ~_lower_triangle(m, n, n - m - 1),
            "Each query attends to its own position only. It may attend to all earlier positions as well: <= instead of ==.",
        ),
        Mistake(
            "later_only",
            lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(n - m + 2),
            "Your mask allows later positions only, and not even the next one. Keep the lower triangle.",
        ),
    ),
    hints=(
        "torch.ones(m, n, dtype=torch.bool).tril() keeps the lower triangle, diagonal included.",
        "With 2 queries and 5 keys, the queries are at positions 3 and 4. To which keys may each attend?",
        "tril takes diagonal=key_length - query_length. Or compare positions: torch.arange(n)[None, :] <= positions[:, None].",
    ),
    differentiable=False,
)
