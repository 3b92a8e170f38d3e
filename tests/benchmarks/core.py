"""The layers and models beside PyTorch's, and what groups of heads and fused kernels are worth.

Run it with ``python -m tests.benchmarks.core``; every ratio compares calls that took turns in one run.
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.attention import scaled_dot_product_attention
from course_lib.blocks import Dropout, LayerNorm
from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from tests.helpers.timing import in_turn

#: vocabulary, d_model, heads, d_ff, layers of encoder and decoder, batch, length
LARGE = (1000, 512, 8, 2048, 2, 80, 10)
DEEP = (8000, 128, 4, 512, 4, 32, 20)


class TorchTransformer(Transformer):
    """The same embeddings and output layer around `nn.Transformer`."""

    def __init__(self, c: TransformerConfig) -> None:
        super().__init__(c)
        del self.encoder, self.decoder, self.encoder_norm, self.decoder_norm
        layers = c.encoder_layers, c.decoder_layers
        self.stacks = nn.Transformer(
            c.d_model, c.num_heads, *layers, c.d_ff, dropout=c.dropout, batch_first=True
        )

    def forward(self, source, target):
        length, masked = target.shape[1], source == 0
        masks = {"src_key_padding_mask": masked, "memory_key_padding_mask": masked}
        masks |= {"tgt_key_padding_mask": target == 0}
        masks |= {"tgt_mask": torch.ones(length, length, dtype=torch.bool).triu(1)}
        inputs = self.source_embedding(source), self.target_embedding(target)
        return self.lm_head(self.stacks(*inputs, **masks))


def training_step(vocabulary, d_model, heads, d_ff, layers, batch, length) -> None:
    """One step of each, with dropout, padding and causal masks, and Adam."""
    config = TransformerConfig(
        target_vocabulary=vocabulary, source_vocabulary=vocabulary, d_model=d_model, num_heads=heads,
        d_ff=d_ff, encoder_layers=layers, decoder_layers=layers, norm="post", final_norm=True,
    )  # fmt: skip
    source, target = (torch.randint(1, vocabulary, (batch, n)) for n in (length, length + 1))
    source[: batch // 2, -2:] = target[: batch // 2, -2:] = 0

    def step(model):
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

        def run() -> None:
            logits = model(source, target[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return run

    ours, theirs = step(Transformer(config)), step(TorchTransformer(config))
    took = in_turn(rounds=12, ours=ours, theirs=theirs)
    print(
        f"training step, d_model {d_model}, {layers}+{layers} layers, vocabulary {vocabulary}, batch "
        f"{batch} × {length}: {took['ours']:.0f} ms, "
        f"{took['theirs'] / took['ours']:.2f} × the throughput of nn.Transformer"
    )


@torch.no_grad()
def grouped_heads() -> None:
    query, key, value = torch.randn(8, 8, 1, 64), *torch.randn(2, 8, 1, 512, 64)
    options = {"need_weights": False, "enable_gqa": True}
    repeated = lambda: (query, key.repeat_interleave(8, 1), value.repeat_interleave(8, 1))  # noqa: E731
    took = in_turn(
        rounds=200,
        grouped=lambda: scaled_dot_product_attention(query, key, value, **options),
        repeated=lambda: F.scaled_dot_product_attention(*repeated()),
    )
    print(
        f"one decode step, 8 query heads on 1 key/value head, 512 keys, batch 8: "
        f"{1000 * took['grouped']:.0f} µs, {took['repeated'] / took['grouped']:.1f} × as fast as with "
        f"repeated keys"
    )


def fused_kernels() -> None:
    x = torch.randn(80, 10, 512, requires_grad=True)

    def both(layer):
        return lambda: torch.autograd.grad(layer(x).sum(), x)

    for ours, theirs, used in (
        (LayerNorm(512), nn.LayerNorm(512), "PyTorch's"),
        (Dropout(0.1), nn.Dropout(0.1), "the one written out"),
    ):
        took = in_turn(rounds=100, ours=both(ours), theirs=both(theirs))
        print(
            f"{type(ours).__name__}, forward and backward: written out {1000 * took['ours']:.0f} µs, "
            f"PyTorch's {1000 * took['theirs']:.0f} µs; the blocks use {used}"
        )


@torch.no_grad()
def decode_step(d_model: int, layers: int, batch: int, past: int) -> None:
    config = TransformerConfig(
        target_vocabulary=1000, d_model=d_model, num_heads=4, decoder_layers=layers,
        d_ff=4 * d_model, positions="rotary", norm="pre",
    )  # fmt: skip
    model, prompt = DecoderOnly(config).eval(), torch.randint(1, 1000, (batch, past))
    cache, token = model.new_cache(), prompt[:, :1]
    model(prompt, cache=cache)
    took = in_turn(rounds=40, cached=lambda: model(token, cache=cache), whole=lambda: model(prompt))
    print(
        f"cached decode step, d_model {d_model}, {layers} layers, batch {batch}, {past} tokens so far: "
        f"{took['cached']:.2f} ms, {took['whole'] / took['cached']:.1f} × as fast as the whole pass"
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    grouped_heads()
    fused_kernels()
    decode_step(64, 2, batch=8, past=16)
    decode_step(128, 4, batch=1, past=64)
    torch.set_num_threads(2)
    training_step(*LARGE)
    training_step(*DEEP)
