"""The library beside PyTorch and Hugging Face, on the same sizes and weights: ``python -m tests.benchmarks.beside``.

Every ratio compares calls that took turns in one run, on two threads; above 1, this library is the faster one.
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.convert import from_torch
from course_lib.decoding import beam_search, greedy
from course_lib.pretrained import load_smollm2
from course_lib.pretrained.weights_file import is_installed
from course_lib.transformer import Transformer
from tests.helpers.generate import beams_of, from_gpt2, gpt2
from tests.helpers.llama import llama
from tests.helpers.multihead import HeadLoop
from tests.helpers.timing import in_turn


def report(what: str, rounds: int, **calls) -> None:
    """Print the time of `ours`, and that of the others over it."""
    took = in_turn(rounds=rounds, **calls)
    print(f"{what}: {took['ours']:.1f} ms")
    for name, other in took.items():
        if name != "ours":
            print(f"  {other / took['ours']:5.2f} × the throughput of {name}", flush=True)


def backward(layer, call):
    """A step of training without an optimizer."""

    def run() -> None:
        layer.zero_grad()
        call().square().mean().backward()

    return run


def attention(batch=8, length=256, d_model=512, heads=8) -> None:
    x = torch.randn(batch, length, d_model)
    theirs = nn.MultiheadAttention(d_model, heads, batch_first=True)
    ours, loop = from_torch(theirs), HeadLoop(d_model, heads)
    matrices = [torch.randn(d_model, d_model) / d_model**0.5 for _ in range(4)]

    def bare():
        """Less cannot be done."""
        q, k, v = ((x @ m).view(batch, length, heads, -1).transpose(1, 2) for m in matrices[:3])
        output = F.scaled_dot_product_attention(q, k, v)
        return output.transpose(1, 2).reshape(batch, length, d_model) @ matrices[3]

    calls = {
        "ours": backward(ours, lambda: ours(x).output),
        "nn.MultiheadAttention": backward(theirs, lambda: theirs(x, x, x, need_weights=False)[0]),
        "the same layer with its weights": backward(
            ours, lambda: ours(x, need_weights=True).output
        ),
        "a loop over the heads": backward(loop, lambda: loop(x).output),
    }
    report("multi-head attention, forward and backward", 40, **calls)
    with torch.no_grad():
        bare_limit = {"four matrix products and the fused kernel": bare}
        report("multi-head attention, forward", 40, ours=lambda: ours(x), **bare_limit)


def training_step(vocabulary=8000, d_model=128, heads=4, d_ff=512, layers=4) -> None:
    """With dropout, padding and causal masks, and Adam; the embeddings are the same around both stacks."""
    theirs = nn.Transformer(d_model, heads, layers, layers, d_ff, batch_first=True)
    ours = from_torch(theirs, target_vocabulary=vocabulary)
    around = Transformer(ours.config)
    source, target = torch.randint(1, vocabulary, (2, 32, 21)).unbind()
    source[:16, -2:] = target[:16, -2:] = 0
    masks = {"src_key_padding_mask": source == 0, "memory_key_padding_mask": source == 0}
    masks |= {
        "tgt_key_padding_mask": target[:, :-1] == 0,
        "tgt_mask": torch.ones(20, 20).triu(1) > 0,
    }

    def logits():
        inputs = around.source_embedding(source), around.target_embedding(target[:, :-1])
        return around.lm_head(theirs(*inputs, **masks))

    def step(call, *models):
        optimizer = torch.optim.Adam([p for one in models for p in one.parameters()], lr=1e-4)

        def run() -> None:
            loss = F.cross_entropy(call().flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return run

    around_theirs = around.source_embedding, around.target_embedding, around.lm_head
    calls = {"nn.Transformer": step(logits, theirs, *around_theirs)}
    mine = step(lambda: ours(source, target[:, :-1]), ours)
    report(f"training step, {layers}+{layers} layers", 12, ours=mine, **calls)


def search(batch=32, beam=4, written=50, vocabulary=1000) -> None:
    theirs = gpt2(
        vocab_size=vocabulary, n_positions=64, n_embd=256, n_layer=4, n_head=8, n_inner=1024
    )
    theirs.generation_config.suppress_tokens = [0, 2]
    ours, ruled_out = from_gpt2(theirs), torch.zeros(vocabulary)
    ruled_out[[0, 2]] = -torch.inf  # nothing ends early
    ours.lm_head.register_forward_hook(lambda layer, given, logits: logits + ruled_out)
    prompt = torch.randint(3, vocabulary, (batch, 8))
    calls = {"Hugging Face generate": lambda: beams_of(theirs, prompt, written, num_beams=beam)}
    mine = lambda: beam_search(ours, prompt, beam, max_length=written)  # noqa: E731
    report(f"beam search, {batch} prompts, {written} tokens", 5, ours=mine, **calls)


@torch.no_grad()
def language_model(written=40, no_end=49151) -> None:
    """SmolLM2; the end token is one that greedy decoding of this prompt does not generate."""
    for dtype in (torch.float32, torch.bfloat16):
        model, tokenizer = load_smollm2(dtype)
        theirs = llama(model)
        theirs.generation_config.eos_token_id = None
        prompt = torch.tensor([tokenizer.encode("Once upon a time, in a village by the sea,")])
        given = {"attention_mask": torch.ones_like(prompt), "do_sample": False}
        given |= {"max_new_tokens": written, "min_new_tokens": written}
        calls = {"Hugging Face generate": lambda: theirs.generate(prompt, **given)}  # noqa: B023
        mine = lambda: greedy(model, prompt, max_length=written, eos_id=no_end)  # noqa: B023, E731
        report(f"SmolLM2, {written} tokens, {dtype}", 5, ours=mine, **calls)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(2)
    attention()
    training_step()
    search()
    if is_installed():
        language_model()
