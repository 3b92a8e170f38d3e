"""What an exercise is: a reference, cases, known mistakes, hints and a solution."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_lib import messages

#: The notebooks with exercises, lessons and studies; each has a folder in `catalogue`, without the number.
NOTEBOOKS = (
    "00_start_here",
    "01_kernel_regression",
    "01a_which_average",
    "02_scoring_functions",
    "02a_scale_in_training",
    "02b_which_scoring_function",
    "03_seq2seq_with_attention",
    "03a_rnn_or_gru",
    "03b_where_the_bottleneck_begins",
    "03c_which_dates_go_wrong",
    "04_self_and_cross_attention",
    "04a_cost_of_attention",
    "04b_do_weights_explain",
    "05_multi_head_attention",
    "05a_more_heads",
    "05b_shared_heads",
    "05c_other_peoples_code",
    "06_positional_encodings",
    "06a_extrapolation",
    "06b_longer_context",
    "07_transformer_blocks",
    "07a_deep_post_norm",
    "07b_which_activation",
    "08_transformer",
    "08a_word_alignment",
    "08b_training_recipe",
    "09_decoding_and_bleu",
    "09a_wide_beams",
    "09b_trusting_a_score",
    "10_efficient_attention",
    "10b_random_features",
    "11_scaling_laws",
    "11a_exponent",
    "12_translation",
    "12a_where_it_fails",
    "12b_real_alignments",
    "13_language_model",
    "13a_fewer_bits",
    "13b_beyond_the_context",
    "13c_lora",
    "14_inside_a_language_model",
    "14a_induction_circuit",
)


class Case(dict[str, Any]):
    """One input, argument name → value, passed by position: `Case(keys=tensor, bandwidth=0.5)`."""


@dataclass(frozen=True)
class Mistake:
    """An implementation that runs and is wrong, and the diagnosis for a learner who wrote the same.

    Attributes:
        name: a short name, unique within the exercise.
        implementation: takes the arguments of the reference.
        message: the diagnosis, one or two sentences to the learner.
        edits: of the solution's source, where they make the implementation; see `edits`.
        left: whether it is what is left of the bugs of a hunt.
    """

    name: str
    implementation: Callable
    message: str
    edits: tuple[tuple[str, str, bool], ...] = ()
    left: bool = False


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """A function to write, or to repair. Its name is that of its file, its notebook that of the folder.

    Attributes:
        title: a few words for the list of exercises.
        solution: right on every case, written as a learner would write it; its source is shown.
        cases: the smallest first.
        mistakes: the cases tell them apart from each other and from the solution.
        hints: from a nudge to nearly the answer.
        reference: what attempts are compared with, built on `course_lib`; the solution where left out.
        given: for a bug hunt, the wrong implementation that the notebook shows.
        given_message: the message for it as given; "The bug is still there." by default.
        differentiable: whether gradients must flow to every floating-point tensor in the cases.
        most_elements: of any tensor that an attempt makes in the last case, where the text sets a limit.
        pairs: whether two mistakes at different places are recognised together; not where that takes long.
    """

    title: str
    solution: Callable
    cases: tuple[Case, ...]
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, ...]
    reference: Callable = None
    given: Callable | None = None
    given_message: str = messages.STILL_AS_GIVEN
    differentiable: bool = True
    most_elements: int | None = None
    pairs: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", self.reference or self.solution)

    @property
    def name(self) -> str:
        """What the learner passes to `check`."""
        return self.solution.__module__.rpartition(".")[2]

    @property
    def notebook(self) -> str:
        """The stem of the notebook that sets it."""
        folder = self.solution.__module__.split(".")[-2]
        return next(stem for stem in NOTEBOOKS if stem.partition("_")[2] == folder)
