"""A valid call of every public callable that computes, made anew each time, and what may stand for its arguments."""

import copy
from collections.abc import Callable
from dataclasses import is_dataclass
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from course_lib import (
    attention,
    bleu,
    blocks,
    cache,
    data,
    decoding,
    efficient,
    inspection,
    interpretability,
    masks,
    multihead,
    pooling,
    positions,
    recurrent,
    scaling,
    scoring,
    training,
    transformer,
)


class Call(NamedTuple):
    """`function(**arguments)` is a valid call."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


SIZES = {
    "target_vocabulary": 9, "source_vocabulary": 11, "d_model": 12, "num_heads": 3, "num_kv_heads": 1,
    "encoder_layers": 1, "decoder_layers": 2, "d_ff": 7, "dropout": 0.0, "max_length": 20, "pad_id": 0,
}  # fmt: skip
CELL = {"input_size": 3, "hidden_size": 4}
ENCODER = {"vocabulary_size": 11, "embedding_size": 3, "hidden_size": 4, "pad_id": 0}
DECODER = {"vocabulary_size": 9, "embedding_size": 3, "hidden_size": 8, "memory_size": 8}
T5 = {"bidirectional": True, "num_buckets": 8, "max_distance": 20}
BLOCK = {"d_model": 12, "num_heads": 3, "d_ff": 7, "norm": "pre", "dropout": 0.0, "num_kv_heads": 1}


def tokens(vocabulary: int, batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, vocabulary, (batch, length))


def x(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def seq2seq(decoder: type = recurrent.BahdanauDecoder) -> recurrent.Seq2Seq:
    return recurrent.Seq2Seq(recurrent.GRUEncoder(**ENCODER), decoder(**DECODER)).eval()


def model(made: type = transformer.Transformer) -> nn.Module:
    return made(transformer.TransformerConfig(**SIZES)).eval()


def decode_step(made: Callable[[], nn.Module]) -> Call:
    ready = made()
    _, state = ready.prefill(tokens(9, 2, 5), bos_id=1)
    return Call(ready.decode_step, {"token": torch.tensor([3, 4]), "state": state})


def train(**arguments: Any) -> Call:
    layer = nn.Linear(3, 1)
    fixed = {"model": layer, "loss": lambda model, batch: model(batch).square().mean()}
    if "steps" in arguments:
        return Call(training.fit, fixed | {"batches": [x(2, 3)] * 4} | arguments)
    fixed |= {"optimizer": torch.optim.Adam(layer.parameters()), "batches": [x(2, 3)]}
    return Call(training.train_step, fixed | arguments)


def leaves(result: Any) -> list[Any]:
    """All that a result holds, in order: of modules their weights, of objects their attributes."""
    if isinstance(result, nn.Module):
        return leaves(result.state_dict())
    if isinstance(result, dict):
        return [*result, *leaves(list(result.values()))]
    if isinstance(result, (list, tuple)):
        return [one for part in result for one in leaves(part)]
    return leaves(vars(result)) if is_dataclass(result) else [result]


def forms(value: Any) -> dict[str, tuple[Any, Any]]:
    """By name, what may stand in place of a value, and what it then means; None where it means nothing."""
    if isinstance(value, bool):
        return {"NumPy": (np.bool_(value), value), "0 or 1": (int(value), value)}
    if isinstance(value, int):
        return {"NumPy": (np.int64(value), value), "float": (float(value), value), "True": (True, 1)}  # fmt: skip
    if isinstance(value, float):
        return {"NumPy": (np.float64(value), value)}
    if isinstance(value, nn.Module):
        return {"float64": (copy.deepcopy(value).double(), value)}
    if not isinstance(value, Tensor):
        return {}
    found = {
        "strided": (torch.stack([value, value], -1)[..., 0], value),
        "an axis more": (value[None], value),
        "an axis at the end": (value[..., None], value),
        "an axis less": (value[0], value[:1]),
        "one row": (value[:1], value[:1].expand_as(value)),
        "one component": (value[..., :1], value[..., :1].expand_as(value)),
        "fewer components": (value[..., 1:], None),
    }
    if value.dim() > 1:
        fewer = value[..., 1:, :]
        found["fewer rows"] = (fewer, fewer.expand_as(value) if fewer.shape[-2] == 1 else None)
        found["transposed"] = (value.mT, None)
    if value.dtype == torch.bool:
        additive = torch.zeros(value.shape).masked_fill(~value, -torch.inf)
        return found | {"0 and 1": (value.long(), value), "0.0 and 1.0": (value.float(), value),
                        "0 and -inf": (additive, value)}  # fmt: skip
    if not value.is_floating_point():
        return found | {"int32": (value.int(), value)}
    whole = (3 * value).long()
    return found | {"float64": (value.double(), value), "whole": (whole, whole.to(value.dtype))}


def calls() -> dict[str, Callable[[], Call]]:
    """By name, what makes the call; the same random numbers are in it each time."""
    q, k, v = ("query", "key", "value")
    made: dict[str, Callable[[], Call]] = {}

    def seeded(name: str, make: Callable[[], Call]) -> None:
        def call() -> Call:
            torch.manual_seed(0)
            return make()

        made[name] = call

    def module(name: str, layer: Callable[[], Callable], /, **given: Any) -> None:
        make = lambda: {n: a() if callable(a) else a for n, a in given.items()}  # noqa: E731
        seeded(name, lambda: Call(layer(), make()))

    def add(name: str, function: Callable, /, **arguments: Any) -> None:
        module(name, lambda: function, **arguments)

    def both(made: type, settings: dict[str, Any], /, **inputs: Any) -> None:
        """Its construction, and a call of the layer."""
        if settings:
            add(made.__name__, made, **settings)
        module(f"{made.__name__}.forward", lambda: made(**settings), **inputs)

    # --- 1 to 3: kernel regression, scores, recurrent networks -----------------------------------
    series = {"keys": lambda: x(5), "values": lambda: x(5), "kernel": "gaussian", "bandwidth": 0.7}
    add("attention_pooling", pooling.attention_pooling, queries=lambda: x(4), **series)
    add("leave_one_out_error", pooling.leave_one_out_error, **series)
    both(pooling.NadarayaWatson, {"bandwidth": 0.7}, queries=lambda: x(4), keys=lambda: x(5),
         values=lambda: x(5))  # fmt: skip
    vectors = {q: lambda: x(2, 4, 6), k: lambda: x(2, 5, 6)}
    pairs = {"query_size": 6, "key_size": 6, "hidden_size": 3}
    for score, settings in {
        scoring.DotScore: {},
        scoring.ScaledDotScore: {},
        scoring.GaussianScore: {"bandwidth": 0.7},
        scoring.GeneralScore: {"query_size": 6, "key_size": 6},
        scoring.AdditiveScore: pairs,
        scoring.ConcatScore: pairs,
    }.items():
        both(score, settings, **vectors)
    both(recurrent.GRUCell, CELL, input=lambda: x(2, 3), state=lambda: x(2, 4))
    both(recurrent.GRUEncoder, ENCODER, source=lambda: tokens(11, 2, 5))
    for decoder, more in (
        (recurrent.FixedContextDecoder, {"readout_size": 5}),
        (recurrent.BahdanauDecoder, {"score_size": 3, "readout_size": 5}),
        (recurrent.LuongDecoder, {"score": "general", "input_feeding": True}),
    ):
        add(decoder.__name__, decoder, **DECODER, **more)
        module(f"{decoder.__name__}: Seq2Seq.forward", lambda decoder=decoder: seq2seq(decoder),
               source=lambda: tokens(11, 2, 5), target=lambda: tokens(9, 2, 4))  # fmt: skip
    add("Seq2Seq", recurrent.Seq2Seq, encoder=lambda: recurrent.GRUEncoder(**ENCODER),
        decoder=lambda: recurrent.BahdanauDecoder(**DECODER), bos_id=1, eos_id=2, pad_id=0)  # fmt: skip
    module("Seq2Seq.generate", lambda: seq2seq().generate, source=lambda: tokens(11, 2, 5),
           max_length=3)  # fmt: skip
    seeded("Seq2Seq.decode_step", lambda: decode_step(seq2seq))

    # --- 4 and 5: masks, attention, heads --------------------------------------------------------
    mask = lambda: masks.causal_mask(4, 5)  # noqa: E731
    add("masked_softmax", masks.masked_softmax, scores=lambda: x(2, 4, 5), mask=mask, dim=-1)
    add("padding_mask", masks.padding_mask, lengths=lambda: torch.tensor([3, 5]), max_length=5)
    add("padding_mask_from_tokens", masks.padding_mask_from_tokens,
        tokens=lambda: tokens(9, 2, 5), pad_id=0)  # fmt: skip
    add("causal_mask", masks.causal_mask, query_length=4, key_length=5)
    add("from_additive", masks.from_additive, mask=lambda: masks.to_additive(mask()))
    add("to_additive", masks.to_additive, mask=mask, dtype=torch.float32)
    add("combine_masks", lambda first, second: masks.combine_masks(first, second), first=mask,
        second=lambda: masks.padding_mask(torch.tensor([3, 5])))  # fmt: skip
    heads = {q: lambda: x(2, 3, 4, 6), k: lambda: x(2, 3, 5, 6), v: lambda: x(2, 3, 5, 6)}
    for need_weights in (True, False):
        add(f"scaled_dot_product_attention, need_weights={need_weights}",
            attention.scaled_dot_product_attention, **heads, mask=mask, scale=0.4,
            bias=lambda: x(3, 4, 5), dropout=0.0, need_weights=need_weights)  # fmt: skip
    add("attend", attention.attend, scores=lambda: x(2, 4, 5), value=lambda: x(2, 5, 6), mask=mask,
        dropout=0.0)  # fmt: skip
    both(attention.SingleHeadAttention, {"d_model": 6, "d_head": 4}, **vectors,
         value=lambda: x(2, 5, 6), mask=mask)  # fmt: skip
    module("SelfAttention.forward", lambda: attention.SelfAttention(6), x=lambda: x(2, 4, 6),
           mask=lambda: masks.causal_mask(4))  # fmt: skip
    module("CrossAttention.forward", lambda: attention.CrossAttention(6), x=lambda: x(2, 4, 6),
           memory=lambda: x(2, 5, 6), mask=mask)  # fmt: skip
    add("Attention", attention.Attention, score=scoring.DotScore, dropout=0.0)
    module("Attention.forward", lambda: attention.Attention(scoring.DotScore()), **vectors,
           value=lambda: x(2, 5, 6), mask=mask)  # fmt: skip
    sizes = {"d_model": 12, "num_heads": 3}
    add("MultiHeadAttention", multihead.MultiHeadAttention, **sizes, num_kv_heads=1, dropout=0.0,
        kdim=5, vdim=7)  # fmt: skip
    inputs = {q: lambda: x(2, 4, 12), k: lambda: x(2, 5, 12), v: lambda: x(2, 5, 12)}
    module("MultiHeadAttention.forward", lambda: multihead.MultiHeadAttention(**sizes), **inputs,
           mask=mask)  # fmt: skip
    add("split_heads", multihead.split_heads, x=lambda: x(2, 4, 12), num_heads=3)
    add("merge_heads", multihead.merge_heads, heads=lambda: x(2, 3, 4, 5))
    add("entropy", inspection.entropy, weights=lambda: x(2, 4, 5).softmax(-1))
    add("mean_distance", inspection.mean_distance, weights=lambda: x(2, 4, 5).softmax(-1))

    # --- 10: efficient attention -----------------------------------------------------------------
    real = {"padding_mask": lambda: masks.padding_mask(torch.tensor([3, 5]))[:, None]}
    alike = {q: lambda: x(2, 3, 5, 6), k: lambda: x(2, 3, 5, 6), v: lambda: x(2, 3, 5, 6)}
    row = {q: lambda: x(2, 1, 6), k: lambda: x(2, 1, 6), v: lambda: x(2, 1, 6)}
    projection = {"projection": lambda: x(7, 6)}
    add("flash_attention", efficient.flash_attention, **heads, mask=mask, causal=True,
        block_size=2, scale=0.4)  # fmt: skip
    add("sliding_window_attention", efficient.sliding_window_attention, **alike, window=2,
        causal=True, **real, scale=0.4)  # fmt: skip
    add("block_attention", efficient.block_attention, **alike, block_size=2, causal=True, **real,
        scale=0.4)  # fmt: skip
    add("longformer_attention", efficient.longformer_attention, **alike, window=1,
        global_positions=lambda: torch.tensor([0, 3]),
        **{f"global_{name}": make for name, make in alike.items()}, **real, scale=0.4)  # fmt: skip
    add("longformer_attention, a list", efficient.longformer_attention, **alike, window=1,
        global_positions=[0, 3])  # fmt: skip
    for causal in (True, False):
        given = alike if causal else heads
        add(f"linear_attention, causal={causal}", efficient.linear_attention, **given,
            causal=causal, feature_map=lambda: efficient.elu_plus_one, **real)  # fmt: skip
        add(f"performer_attention, causal={causal}", efficient.performer_attention, **given,
            **projection, causal=causal, **real, scale=0.4)  # fmt: skip
    add("linear_attention_state", efficient.linear_attention_state, key=lambda: x(2, 5, 6),
        value=lambda: x(2, 5, 3), padding_mask=lambda: masks.padding_mask(torch.tensor([3, 5])))  # fmt: skip
    add("linear_attention_step", efficient.linear_attention_step, **row,
        state=lambda: efficient.linear_attention_state(x(2, 4, 6), x(2, 4, 6)))  # fmt: skip
    add("performer_features", efficient.performer_features, x=lambda: x(2, 5, 6), **projection)
    add("orthogonal_projection", efficient.orthogonal_projection, num_features=7, d=6,
        generator=torch.Generator, dtype=torch.float32)  # fmt: skip
    linformer = {**sizes, "length": 5, "rank": 2}
    both(efficient.LinformerAttention, linformer | {"shared": False, "bias": True}, need_weights=True,
         x=lambda: x(2, 4, 12), padding_mask=lambda: masks.padding_mask(torch.tensor([3, 4])))  # fmt: skip
    add("attention_pattern", efficient.attention_pattern, kind="longformer", length=5, window=1,
        global_positions=[0, 3], block_size=2)  # fmt: skip
    add("pattern_cost", efficient.pattern_cost, mask=mask, d_head=6, bytes_per_score=4)

    # --- 6: positions ----------------------------------------------------------------------------
    lengths = {"query_length": 4, "key_length": 5}
    add("relative_positions", positions.relative_positions, **lengths)
    add("sinusoidal_table", positions.sinusoidal_table, length=4, d_model=6, base=100.0,
        dtype=torch.float32)  # fmt: skip
    add("alibi_slopes", positions.alibi_slopes, num_heads=6)
    add("alibi_bias", positions.alibi_bias, num_heads=6, **lengths)
    add("t5_bucket", positions.t5_bucket, relative=lambda: torch.arange(-30, 30), **T5)
    add("rotary", positions.rotary, x=lambda: x(2, 4, 6), positions=lambda: torch.arange(4),
        base=100.0, layout="half")  # fmt: skip
    add("make_positions", positions.make_positions, name="t5", **sizes, max_length=20,
        bidirectional=True)  # fmt: skip
    embedded = {"x": lambda: x(2, 4, 6), "offset": 3}
    both(positions.SinusoidalPositions, {"d_model": 6, "base": 100.0}, **embedded)
    both(positions.LearnedPositions, {"max_length": 20, "d_model": 6}, **embedded)
    add("RotaryPositions", positions.RotaryPositions, d_head=6, base=100.0, layout="half")
    add("ShawRelativePositions", positions.ShawRelativePositions, d_head=6, max_distance=4)
    both(positions.T5RelativeBias, {"num_heads": 3, **T5}, **lengths)
    add("AlibiBias", positions.AlibiBias, num_heads=3)

    # --- 7 and 8: blocks, models, cache ----------------------------------------------------------
    both(blocks.LayerNorm, {"d_model": 6, "eps": 1e-5}, x=lambda: x(2, 4, 6))
    add("make_norm", blocks.make_norm, norm_type="rms", d_model=6, eps=1e-5)
    both(blocks.Dropout, {"p": 0.3}, x=lambda: x(2, 4, 6))
    both(blocks.FeedForward, {"d_model": 6, "d_ff": 7, "dropout": 0.0, "activation": "gelu"},
         x=lambda: x(2, 4, 6))  # fmt: skip
    stream = {"x": lambda: x(2, 4, 12), "mask": lambda: masks.causal_mask(4)}
    both(blocks.EncoderBlock, BLOCK, **stream)
    both(blocks.DecoderBlock, BLOCK, **stream, memory=lambda: x(2, 5, 12),
         memory_mask=lambda: masks.padding_mask(torch.tensor([3, 5])))  # fmt: skip
    add("TransformerConfig", transformer.TransformerConfig, **SIZES, norm_type="rms", norm_eps=1e-6,
        positions="rotary", rope_theta=1000.0, rope_layout="half", scale_embeddings=False,
        activation="swiglu", bias=False)  # fmt: skip
    module("Transformer.forward", model, source=lambda: tokens(11, 2, 5),
           target=lambda: tokens(9, 2, 4))  # fmt: skip
    module("DecoderOnly.forward", lambda: model(transformer.DecoderOnly),
           tokens=lambda: tokens(9, 2, 4))  # fmt: skip
    seeded("Transformer.decode_step", lambda: decode_step(model))
    seeded("DecoderOnly.decode_step", lambda: decode_step(lambda: model(transformer.DecoderOnly)))
    module("KeyValueCache.update", lambda: cache.KeyValueCache().update, key=lambda: x(2, 3, 4, 6),
           value=lambda: x(2, 3, 4, 6))  # fmt: skip

    one = {"model": lambda: model(transformer.DecoderOnly), "tokens": lambda: tokens(9, 1, 4)}
    add("attention_weights", interpretability.attention_weights, **one)
    add("logit_lens", interpretability.logit_lens, **one, position=2)
    add("surprisal", interpretability.surprisal, **one)
    weights = {"weights": lambda: x(2, 5, 5).softmax(-1)}
    add("previous_token_score", interpretability.previous_token_score, **weights)
    add("first_token_score", interpretability.first_token_score, **weights, start=2)
    add("induction_score", interpretability.induction_score, **weights, period=3)
    add("repeated_tokens", interpretability.repeated_tokens, period=3, vocabulary=9, batch=2, first=1,
        seed=0)  # fmt: skip

    # --- 8 and 9: training, decoding, evaluation, data -------------------------------------------
    logits = {"logits": lambda: x(2, 4, 9), "target": lambda: tokens(9, 2, 5)}
    add("next_token_loss", training.next_token_loss, **logits, pad_id=0, smoothing=0.1)
    both(training.LabelSmoothingLoss, {"smoothing": 0.1, "ignore_index": -100}, logits=lambda: x(8, 9),
         target=lambda: torch.randint(9, (8,)))  # fmt: skip
    add("linear_schedule_with_warmup", training.linear_schedule_with_warmup, step=3, peak_lr=0.1,
        steps=20, warmup=10)  # fmt: skip
    add("TrainingConfig", training.TrainingConfig, max_grad_norm=1.0, gradient_accumulation_steps=1,
        checkpoint_every=100)  # fmt: skip
    seeded("fit", lambda: train(steps=2, lr=0.1, seed=0))
    seeded("train_step", lambda: train(max_grad_norm=1.0))
    decode = {"source": lambda: tokens(9, 2, 5), "max_length": 4, "bos_id": 1, "eos_id": 2}
    for name, build in (("Transformer", model), ("Seq2Seq", seq2seq)):
        add(f"greedy, {name}", decoding.greedy, model=build, **decode)
        add(f"sample, {name}", decoding.sample, model=build, **decode, seed=0)
        add(f"stream, {name}", lambda **given: list(decoding.stream(**given)), model=build, **decode,
            logits_processors=(), seed=0)  # fmt: skip
        add(f"beam_search, {name}", decoding.beam_search, model=build, **decode, beam_size=2,
            length_penalty=0.6)  # fmt: skip
    add("temperature", decoding.temperature, logits=lambda: x(2, 9), t=0.7)
    add("top_k", decoding.top_k, logits=lambda: x(2, 9), k=3)
    add("top_p", decoding.top_p, logits=lambda: x(2, 9), p=0.8)
    texts = [["the", "cat", "sat"], ["a", "dog"]]
    references = [[["the", "cat", "sat"]], [["a", "big", "dog"]]]
    add("bleu", bleu.bleu, candidates=texts, references=references, max_n=2)
    add("modified_precision", bleu.modified_precision, candidates=texts, references=references, n=2)
    add("brevity_penalty", bleu.brevity_penalty, candidate_length=5, reference_length=6)
    add("pad", data.pad, sequences=lambda: [torch.tensor([3, 4]), torch.tensor([5])], pad_id=0)
    batch = lambda: [torch.tensor([3, 4]), torch.tensor([5, 6, 7])]  # noqa: E731
    add("PairBatches", lambda **given: next(iter(data.PairBatches(**given))), sources=batch,
        targets=batch, batch_size=2, pad_id=0, seed=0)  # fmt: skip
    add("Vocabulary", data.Vocabulary, tokens=["a", "b"])
    add("phrases", data.phrases, count=3, split="train", seed=0)
    add("written_dates", data.written_dates, count=3, split="train", seed=0)
    add("write_date", data.write_date, day=date(2024, 3, 5), language="en", style="long")
    add("wave_series", data.wave_series, count=5, noise=0.4, seed=0)
    add("pronoun_sentences", data.pronoun_sentences, split="train")
    add("strongest_links", data.strongest_links, weights=lambda: x(4, 5).softmax(-1))
    add("alignment_error_rate", data.alignment_error_rate, found=[{(0, 0)}, {(0, 0)}],
        phrases=lambda: data.phrases(2))  # fmt: skip
    add("english_words", data.english_words, text="the cat sleeps .")
    add("detokenize", data.detokenize, tokens=["le", "chat"])
    add("docstring_text", data.docstring_text, packages=("packaging",))
    add("text_windows", data.text_windows, text=lambda: torch.arange(30, dtype=torch.uint8), length=4,
        seed=0)  # fmt: skip

    # --- scaling ---------------------------------------------------------------------------------
    configuration = lambda: transformer.TransformerConfig(**SIZES)  # noqa: E731
    kind = {"config": configuration, "architecture": "encoder_decoder"}
    add("parameter_count", scaling.parameter_count, **kind, embeddings=True)
    add("flops_per_token", scaling.flops_per_token, **kind, length=5, training=True)
    add("kv_cache_bytes", scaling.kv_cache_bytes, **kind, length=5, batch=2, dtype=torch.float32)
    add("activation_bytes", scaling.activation_bytes, config=configuration, batch=2, length=5,
        dtype=torch.float32)  # fmt: skip
    many, losses = [1e3, 2e3, 4e3, 8e3, 1.6e4], [3.0, 2.6, 2.3, 2.1, 2.0]
    add("fit_power_law", scaling.fit_power_law, x=many, loss=losses, irreducible=True)
    add("bootstrap_power_law", scaling.bootstrap_power_law, x=many, loss=losses, irreducible=False,
        samples=9, level=0.9, seed=0)  # fmt: skip
    add("PowerLaw.predict", scaling.PowerLaw(0.3, 20.0, 1.2).predict, x=many)
    surface = scaling.LossSurface(1.7, 400.0, 0.3, 400.0, 0.3)
    add("LossSurface.predict", surface.predict, parameters=many, tokens=many)
    add("LossSurface.optimal", surface.optimal, flops=1e12, flops_per_parameter=6.0)
    runs = [1e5, 2e5, 4e5, 1e5, 2e5]
    add("fit_loss_surface", scaling.fit_loss_surface, parameters=many, tokens=runs,
        loss=surface.predict(many, runs).tolist(), delta=0.1, start=surface)  # fmt: skip
    add("isoflop_minimum", scaling.isoflop_minimum, parameters=many, loss=[2.2, 2.0, 1.9, 2.0, 2.3])
    return made


CALLS = calls()
