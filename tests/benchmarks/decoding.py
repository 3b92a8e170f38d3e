"""Beam search beside `generate` of Hugging Face, on the same weights.

Run it with ``python -m tests.benchmarks.decoding``; the ratio compares calls that took turns in one run.
"""

import math

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from course_lib.decoding import Beams, beam_search
from course_lib.transformer import DecoderOnly, TransformerConfig
from tests.benchmarks.multihead import in_turn

BATCH, BEAM, PROMPT, WRITTEN, VOCABULARY = 32, 4, 8, 50, 1000
PAD, EOS = 0, 2


def gpt2(**sizes: int) -> GPT2LMHeadModel:
    """A GPT-2 with random weights that neither pads nor stops by itself."""
    config = GPT2Config(
        activation_function="gelu", bos_token_id=1, eos_token_id=EOS, pad_token_id=PAD, **sizes
    )
    return GPT2LMHeadModel(config).eval()


def carried(theirs: GPT2LMHeadModel) -> DecoderOnly:
    """Our model with the weights of theirs."""
    sizes = theirs.config
    ours = DecoderOnly(
        TransformerConfig(
            target_vocabulary=sizes.vocab_size,
            d_model=sizes.n_embd,
            num_heads=sizes.n_head,
            decoder_layers=sizes.n_layer,
            d_ff=sizes.n_inner,
            max_length=sizes.n_positions,
            dropout=0.0,
            norm="pre",
            positions="learned",
            activation="gelu",
            pad_id=PAD,
        )  # fmt: skip
    )
    state = theirs.transformer.state_dict()
    made = {
        "input.embedding.table.weight": state["wte.weight"] / math.sqrt(sizes.n_embd),
        "input.positions.table": state["wpe.weight"],
        "out.weight": theirs.lm_head.weight,
    }
    names = {
        "attention.out": "attn.c_proj",
        "network.wider": "mlp.c_fc",
        "network.back": "mlp.c_proj",
        "residuals.0.norm": "ln_1",
        "residuals.1.norm": "ln_2",
    }
    for what in ("weight", "bias"):
        made[f"norm.{what}"] = state[f"ln_f.{what}"]
        for place in range(sizes.n_layer):
            thirds = state[f"h.{place}.attn.c_attn.{what}"].chunk(3, -1)
            for part, third in zip(("query", "key", "value"), thirds, strict=True):
                made[f"blocks.{place}.attention.{part}.{what}"] = third.T if third.dim() > 1 else third  # fmt: skip
            for mine, hers in names.items():
                tensor = state[f"h.{place}.{hers}.{what}"]
                made[f"blocks.{place}.{mine}.{what}"] = tensor.T if tensor.dim() > 1 else tensor
    ours.load_state_dict(made)
    return ours.to(theirs.dtype).eval()


def beams_of(theirs, prompt: torch.Tensor, written: int, **choices) -> Beams:
    """What `generate` finds with a beam as wide as the number of sequences it returns."""
    beams = choices.pop("num_beams", BEAM)
    found = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), num_beams=beams, num_return_sequences=beams,
        max_new_tokens=written, do_sample=False, early_stopping="never", output_scores=True,
        return_dict_in_generate=True, **choices,
    )  # fmt: skip
    tokens = found.sequences[:, prompt.shape[1] :].unflatten(0, (len(prompt), beams))
    return Beams(tokens, found.sequences_scores.unflatten(0, (len(prompt), beams)))


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    theirs = gpt2(
        vocab_size=VOCABULARY, n_positions=64, n_embd=256, n_layer=4, n_head=8, n_inner=1024
    )
    theirs.generation_config.suppress_tokens = [PAD, EOS]
    ours = carried(theirs)
    ruled_out = torch.zeros(VOCABULARY).index_fill(0, torch.tensor([PAD, EOS]), -torch.inf)
    ours.out.register_forward_hook(lambda layer, given, logits: logits + ruled_out)
    prompt = torch.randint(3, VOCABULARY, (BATCH, PROMPT))

    def search() -> Beams:
        return beam_search(ours, prompt, BEAM, max_length=WRITTEN)

    def generate() -> Beams:
        return beams_of(theirs, prompt, WRITTEN)

    assert torch.equal(search().tokens, generate().tokens) and search().tokens.shape[-1] == WRITTEN
    took = in_turn(rounds=5, search=search, generate=generate)
    print(
        f"beam search, d 256, 4 layers, batch {BATCH}, beam {BEAM}, {WRITTEN} tokens, 1 thread: "
        f"{took['search']:.0f} ms, {1000 * BATCH * WRITTEN / took['search']:.0f} tokens/s, "
        f"{took['generate'] / took['search']:.2f} × the throughput of Hugging Face generate"
    )


if __name__ == "__main__":
    main()
