"""SmolLM2 in this library beside Hugging Face, on the same weights: tokens per second, prefill, loading.

Run it with ``python -m tests.benchmarks.language_model``, or with a number of threads and a dtype behind it, such as
``1 float32``; every ratio compares calls that took turns in one run.
"""

import os
import sys
import tempfile
from time import perf_counter

import torch
from torch import Tensor

from course_lib.decoding import greedy
from course_lib.pretrained import load_smollm2
from course_lib.pretrained.weights_file import is_installed
from tests.helpers.llama import llama
from tests.helpers.timing import in_turn

PROMPT, WRITTEN, PREFILL, ROUNDS = 8, 40, 512, 5
TEXT = "Once upon a time, in a village by the sea,"
NO_END = 49151  # a token that greedy decoding of these prompts does not generate


@torch.no_grad()
def beside_hugging_face(dtype: torch.dtype, threads: int) -> None:
    torch.set_num_threads(threads)
    ours, tokenizer = load_smollm2(dtype)
    theirs = llama(ours)
    theirs.generation_config.eos_token_id = None
    prompt = torch.tensor([tokenizer.encode(TEXT)])[:, :PROMPT]
    long = torch.randint(100, 49000, (1, PREFILL), generator=torch.Generator().manual_seed(0))

    def generate(count: int) -> Tensor:
        given = {"attention_mask": torch.ones_like(prompt), "do_sample": False}
        return theirs.generate(prompt, max_new_tokens=count, min_new_tokens=count, **given)

    def decode(count: int) -> Tensor:
        return greedy(ours, prompt, max_length=count, eos_id=NO_END)

    equal = torch.equal(decode(WRITTEN), generate(WRITTEN)[:, prompt.shape[1] :])
    took = in_turn(
        rounds=ROUNDS,
        ours=lambda: decode(WRITTEN),
        theirs=lambda: generate(WRITTEN),
        our_prefill=lambda: ours.prefill(long),
        their_prefill=lambda: theirs(long, use_cache=True, logits_to_keep=1),
    )
    print(
        f"{dtype}, threads {threads}: {WRITTEN} tokens at {1000 * WRITTEN / took['ours']:.1f} tokens/s, "
        f"{took['theirs'] / took['ours']:.3f} × Hugging Face generate, the same tokens: {equal}; prefill of {PREFILL}"
        f" tokens {took['our_prefill']:.0f} ms, {took['their_prefill'] / took['our_prefill']:.3f} × as fast",
        flush=True,
    )


def loading() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for when in ("the first time", "after that"):
            started = perf_counter()
            load_smollm2()
            print(f"loading {when}: {perf_counter() - started:.1f} s")


@torch.no_grad()
def eight_bits(threads: int) -> None:
    torch.set_num_threads(threads)
    half, tokenizer = load_smollm2(torch.bfloat16)
    small, _ = load_smollm2(torch.int8)
    prompt = torch.tensor([tokenizer.encode(TEXT)])
    options = {"max_length": WRITTEN, "eos_id": NO_END}
    took = in_turn(
        rounds=ROUNDS,
        half=lambda: greedy(half, prompt, **options),
        small=lambda: greedy(small, prompt, **options),
    )
    most = (small(prompt).argmax(-1) == half(prompt).argmax(-1)).float().mean().item()
    print(
        f"int8, threads {threads}: {1000 * WRITTEN / took['small']:.1f} tokens/s, "
        f"{took['half'] / took['small']:.2f} × as fast as bfloat16; "
        f"the same most probable token at {most:.0%} of {prompt.shape[1]} positions",
        flush=True,
    )


def main() -> None:
    if not is_installed():
        sys.exit("the language model is not installed; `make test` installs it")
    if len(sys.argv) > 2:
        beside_hugging_face(getattr(torch, sys.argv[2]), int(sys.argv[1]))
        return
    loading()
    for dtype in (torch.float32, torch.bfloat16):
        for threads in (1, 2):
            beside_hugging_face(dtype, threads)
    for threads in (1, 2):
        eight_bits(threads)


if __name__ == "__main__":
    main()
