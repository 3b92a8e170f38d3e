"""Beam search beside `generate` of Hugging Face, on the same weights.

Run it with ``python -m tests.benchmarks.decoding``; the ratio compares calls that took turns in one run.
"""

import torch

from course_lib.decoding import Beams, beam_search
from tests.helpers.generate import beams_of, from_gpt2, gpt2
from tests.helpers.timing import in_turn

BATCH, BEAM, PROMPT, WRITTEN, VOCABULARY = 32, 4, 8, 50, 1000
PAD, EOS = 0, 2


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    theirs = gpt2(
        vocab_size=VOCABULARY, n_positions=64, n_embd=256, n_layer=4, n_head=8, n_inner=1024
    )
    theirs.generation_config.suppress_tokens = [PAD, EOS]
    ours = from_gpt2(theirs)
    ruled_out = torch.zeros(VOCABULARY).index_fill(0, torch.tensor([PAD, EOS]), -torch.inf)
    ours.lm_head.register_forward_hook(lambda layer, given, logits: logits + ruled_out)
    prompt = torch.randint(3, VOCABULARY, (BATCH, PROMPT))

    def search() -> Beams:
        return beam_search(ours, prompt, BEAM, max_length=WRITTEN)

    def generate() -> Beams:
        return beams_of(theirs, prompt, WRITTEN, num_beams=BEAM)

    assert torch.equal(search().tokens, generate().tokens) and search().tokens.shape[-1] == WRITTEN
    took = in_turn(rounds=5, search=search, generate=generate)
    print(
        f"beam search, d 256, 4 layers, batch {BATCH}, beam {BEAM}, {WRITTEN} tokens, 1 thread: "
        f"{took['search']:.0f} ms, {1000 * BATCH * WRITTEN / took['search']:.0f} tokens/s, "
        f"{took['generate'] / took['search']:.2f} × the throughput of Hugging Face generate"
    )


if __name__ == "__main__":
    main()
