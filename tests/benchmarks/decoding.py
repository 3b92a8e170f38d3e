"""Decode steps of SmolLM2: in place beside a growing cache and Hugging Face; prompt lookup; on a GPU as a CUDA graph.

python -m tests.benchmarks.decoding [--threads 1] [--lengths 100 2000]

The arms take turns, so that a slow moment hits all alike. On a CPU with one thread the time is that of the thread.
"""

import argparse
import copy
from collections.abc import Callable
from statistics import median

import torch
from torch import nn

from course_lib.topics.pretrained import load_smollm2
from course_lib.transformer.decoding import DecodingSession, prompt_lookup, stream
from tests.helpers.llama import llama
from tests.helpers.peers import clock

ROUNDS, STEPS, NEW = 6, 4, 60
HERON = "The road goes on past the mill and the old stone bridge. A heron stands in the shallow water, and nobody has seen it move since Tuesday."
CODE = "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n    return width * height * depth\n"
#: What the model really continues in this way: told to "repeat the text", a model of this size writes something else.
PROMPTS = {
    "copied": f"{CODE}\n\n{CODE}\n\ndef area(width",
    "edited": f"{CODE}\n# The same code with the functions in capitals:\ndef AREA(width, height):\n",
    "quoted": f"Original: {HERON}\nCopy: {HERON}\nCopy:",
    "free": "Once upon a time, in a village by the sea,",
}


def graph_of(step: Callable, token: torch.Tensor) -> Callable:
    """Return the step as a CUDA graph, captured after some warm-up."""
    static = token.clone()
    stream_ = torch.cuda.Stream()
    with torch.cuda.stream(stream_):
        for _ in range(3):
            step(static)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step(static)

    def replay(token: torch.Tensor) -> torch.Tensor:
        static.copy_(token)
        graph.replay()
        return out

    return replay


def arms(model, theirs, prompt) -> dict[str, Callable]:
    """Name → what reads one token and returns the logits of the next."""
    from transformers import DynamicCache

    static, growing, cache = (
        DecodingSession(model, prompt),
        DecodingSession(model, prompt),
        DynamicCache(),
    )
    static.reserve(ROUNDS * STEPS + 8)
    theirs(prompt, past_key_values=cache, logits_to_keep=1)
    made = {
        "static cache": static.step,
        "growing cache": growing.step,
        "Hugging Face": lambda t: theirs(t[:, None], past_key_values=cache).logits[:, -1],
    }
    if torch.cuda.is_available():
        again = DecodingSession(model, prompt)
        again.reserve(ROUNDS * STEPS + 8)
        made["CUDA graph"] = graph_of(again.step, prompt[:, -1])
        compiled = DecodingSession(model, prompt)
        compiled.reserve(ROUNDS * STEPS + 8)
        made["compiled"] = torch.compile(compiled.step, mode="reduce-overhead", fullgraph=True)
    else:
        by_columns = DecodingSession(columns_first(model), prompt)
        by_columns.reserve(ROUNDS * STEPS + 8)
        made["static cache, weights by columns"] = by_columns.step
    return made


def columns_first(model: nn.Module) -> nn.Module:
    """Return a copy whose matrices lie in memory column by column: the same numbers, for another kernel of the BLAS."""
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.weight.data = layer.weight.data.T.contiguous().T
    return model


@torch.no_grad()
def steps(model, theirs, length: int) -> None:
    """Print the time of a step after so many tokens, and its ratio to that with the static cache."""
    generator = torch.Generator().manual_seed(1)
    prompt = torch.randint(20, 49000, (1, length), generator=generator)
    prompt = prompt.to(model.lm_head.weight.device)
    runs, token = arms(model, theirs, prompt), prompt[:, -1]
    seconds = {name: [] for name in runs}
    for turn in range(ROUNDS):
        for name, step in runs.items():
            for _ in range(STEPS):
                started = clock()
                step(token)
                seconds[name] += [clock() - started] if turn else []
    ours = median(seconds["static cache"])
    for name, each in seconds.items():
        print(
            f"{length:5} tokens, {name:33} {1e3 * median(each):7.1f} ms a token, "
            f"{median(each) / ours:.2f} x that of the static cache",
            flush=True,
        )


def lookup(model, tokenizer) -> None:
    """Print how many times as fast prompt lookup is as `stream`, with the same tokens."""
    for name, text in PROMPTS.items():
        prompt = torch.tensor([tokenizer.encode(text)], device=model.lm_head.weight.device)
        options, spent, found, read = {"max_length": NEW, "eos_id": -1}, [], [], []
        counting = model.register_forward_pre_hook(
            lambda _, args, read=read: read.append(args[0].shape[1])
        )
        for decode in (stream, prompt_lookup, stream, prompt_lookup):
            read.clear()
            started = clock()
            found.append([token.item() for token in decode(model, prompt, **options)])
            spent.append(clock() - started)
        counting.remove()
        accepted = (NEW - 1 - len(read)) / max(1, sum(read) - len(read))
        same = sum(a == b for a, b in zip(*found[:2], strict=True))
        ratio = (spent[0] + spent[2]) / (spent[1] + spent[3])
        print(
            f"prompt lookup, {name} text: {ratio:.2f} x greedy in {len(read)} passes, {accepted:.0%} of the proposals "
            f"accepted, {same} of {NEW} tokens the same",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser("python -m tests.benchmarks.decoding")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--lengths", type=int, nargs="*", default=[100, 2000])
    chosen = options.parse_args(arguments)
    torch.set_num_threads(chosen.threads)
    on_gpu = torch.cuda.is_available()
    model, tokenizer = load_smollm2(torch.bfloat16 if on_gpu else torch.float32)
    model = model.to("cuda" if on_gpu else "cpu")
    theirs = llama(model).to(model.lm_head.weight.device)
    lookup(model, tokenizer)
    for length in chosen.lengths:
        steps(model, theirs, length)


if __name__ == "__main__":
    main()
