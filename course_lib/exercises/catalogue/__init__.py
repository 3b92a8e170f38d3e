"""The exercises: a folder for each notebook, a file for each exercise.

A file is the exercise (`start_here/weighted_sum.py` is a short one to start from; CONTRIBUTING.md goes through another):

    docstring            the title
    the first function   the solution, as a learner would write it
    `reference`          what attempts are compared with, built on `course_lib`; the solution where left out
    `MISTAKES`           a table of them; `course_lib.exercises.edits` explains the notation
    `CASES`              inputs, the smallest first
    `HINTS`              one a line, from a nudge to nearly the answer; an indented line continues the one above
    `GIVEN` or `BUGS`    of a bug hunt: the edits that make the code with its bug, or a table of its bugs
    `GIVEN_MESSAGE`      for the code as given, where more can be said than that the bug is still there
    `LEFT`               what is left of the bugs, where that is not what their table gives
    `DIFFERENTIABLE`     False where no gradient can flow
    `MOST_ELEMENTS`      of any tensor that an attempt makes in the last case, where the text sets a limit

Helpers of several exercises of one notebook stand in `_shared.py` of its folder, helpers of several notebooks in
`catalogue/_shared.py`. `tests/unit/test_exercises.py` tests every exercise: that the solution passes, that each mistake
is recognised, and that the cases tell all mistakes apart.
"""

import functools
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import isfunction

import torch

from course_lib import messages
from course_lib.exercises.edits import bugs, edited, edits_of, mistakes
from course_lib.exercises.exercise import Exercise

#: Notebook → its exercises, in the order of the course. The folder of a notebook has its name without the number.
NOTEBOOKS = {
    "00_start_here": "weighted_sum one_query hunt_weights",
    "01_kernel_regression": "hunt_fit hunt_forecast gaussian_weights batched_regression leave_one_out",
    "01a_which_average": "epanechnikov_weights local_linear",
    "02_scoring_functions": "hunt_width hunt_alike masked_attention projected_scores decoder_step_scores",
    "02a_scale_in_training": "without_scale",
    "02b_which_scoring_function": "gaussian_scores",
    "03_seq2seq_with_attention": "hunt_context hunt_padding log_probability greedy_decode bahdanau_decoder luong_decoder",
    "03a_rnn_or_gru": "final_states",
    "03b_where_the_bottleneck_begins": "match_by_length",
    "03c_which_dates_go_wrong": "attention_share",
    "04_self_and_cross_attention": "hunt_dropout decoder_mask from_torch_masks cross_attention",
    "04a_cost_of_attention": "layers_needed",
    "04b_do_weights_explain": "hunt_effect",
    "05_multi_head_attention": "hunt_five hunt_padded hunt_cache decode_step",
    "05a_more_heads": "head_contributions",
    "05b_shared_heads": "pool_kv_heads",
    "05c_other_peoples_code": "one_head causal_self_attention project_heads",
    "06_positional_encodings": "hunt_rope_attention hunt_half hunt_generation shift alibi",
    "06a_extrapolation": "trained_offsets",
    "06b_longer_context": "yarn",
    "07_transformer_blocks": "hunt_norm_layer hunt_add_norm encoder_stack parallel_block",
    "07a_deep_post_norm": "largest_ratio",
    "07b_which_activation": "swiglu",
    "07c_block_of_today": "hunt_normed_scores",
    "08_transformer": "hunt_validation teacher_forcing transformer_forward training_steps decode_mask cached_step",
    "08a_word_alignment": "hunt_cross",
    "08b_training_recipe": "smoothed_targets",
    "09_decoding_and_bleu": "beam_step keep_top_p hunt_bleu search_outcomes",
    "09a_wide_beams": "brevity hunt_top_p",
    "09b_trusting_a_score": "clipped_matches corpus_bleu",
    "10_efficient_attention": "hunt_online hunt_border within_blocks score_gradient linear_step",
    "10b_random_features": "positive_features hunt_prefix",
    "11_scaling_laws": "hunt_training_flops hunt_bits_per_byte llama_parameters lifetime_flops",
    "11a_exponent": "on_frontier power_law",
    "12_translation": "encode_word batch_numbers hunt_accumulation process_losses hunt_resume",
    "12a_where_it_fails": "hunt_order hunt_pairs hunt_ends",
    "12b_real_alignments": "word_weights",
    "13_language_model": "hunt_layout hunt_grouped hunt_template chat_ids surprisal_in_bits low_rank_update",
    "13a_fewer_bits": "dequantise",
    "13b_beyond_the_context": "hunt_decode hunt_batch",
    "13c_lora": "answer_loss",
    "13e_verifiable_reward": "rloo_advantages",
    "14_inside_a_language_model": "direct_attribution duplicate_token_scores hunt_heads_write hunt_mean_ablated lens_rank",
    "14a_induction_circuit": "copying_score",
    "15_models_of_today": "absorbed_scores expert_weights hunt_gated_norm hunt_visible delta_state kept_per_token",
    "15d_reading_a_file": "clamped_swiglu",
}


class Catalogue(Mapping[str, Exercise]):
    """Every exercise and bug hunt by name; an exercise is imported when it is first asked for."""

    def __init__(self) -> None:
        self._notebooks = {one: stem for stem, names in NOTEBOOKS.items() for one in names.split()}

    def __getitem__(self, name: str) -> Exercise:
        return _exercise(name, self._notebooks[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._notebooks)

    def __len__(self) -> int:
        return len(self._notebooks)


@functools.cache
def _exercise(name: str, notebook: str) -> Exercise:
    """Make the exercise that a file is."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # the inputs are made here; a lesson may have another
    try:
        module = import_module(f"{__name__}.{notebook.partition('_')[2]}.{name}")
    finally:
        torch.set_default_dtype(dtype)
    own = vars(module)
    solution = next(f for f in own.values() if isfunction(f) and f.__module__ == module.__name__)
    given, left, said = own.get("GIVEN"), (), own.get("GIVEN_MESSAGE", messages.STILL_AS_GIVEN)
    if "BUGS" in own:
        given, left, said = bugs(solution, module.BUGS)
    elif isinstance(given, str):
        given = edited(solution, edits_of(given))
    return Exercise(
        name=name,
        notebook=notebook,
        title=module.__doc__.removesuffix("."),
        solution=solution,
        reference=own.get("reference"),
        cases=module.CASES,
        mistakes=(*own.get("LEFT", left), *mistakes(solution, module.MISTAKES)),
        hints=tuple(module.HINTS.strip().replace("\n    ", " ").split("\n")),
        given=given,
        given_message=said,
        differentiable=own.get("DIFFERENTIABLE", True),
        most_elements=own.get("MOST_ELEMENTS"),
    )


EXERCISES = Catalogue()
