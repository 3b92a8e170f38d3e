"""SmolLM2-135M-Instruct as a `DecoderOnly`: its configuration, and its weights under the names of this course."""

import copy
import re
import time

import gguf
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from course_lib.topics.pretrained.int8 import PRODUCT, Int8Linear, to_int8
from course_lib.topics.pretrained.stored import cache_file, load, store
from course_lib.topics.pretrained.tokenizer import Tokenizer, read_tokenizer, tokenizer_from
from course_lib.topics.pretrained.weights_file import require_intact, weights_file
from course_lib.transformer import DecoderOnly, TransformerConfig

#: The architecture of LLaMA (Touvron et al. 2023) with the sizes of SmolLM2-135M (Allal et al. 2025). Its own
#: padding token also ends the turns of a chat, so padding is a reserved token that `Tokenizer` gives to no text.
CONFIG = TransformerConfig(
    target_vocabulary=49152,
    d_model=576,
    num_heads=9,
    num_kv_heads=3,
    decoder_layers=30,
    d_ff=1536,
    dropout=0.0,
    norm="pre",
    norm_type="rms",
    norm_eps=1e-5,
    positions="rotary",
    rope_theta=100_000.0,
    max_length=8192,
    scale_embeddings=False,
    tie_embeddings=True,
    activation="swiglu",
    bias=False,
    pad_id=16,
)

#: GGUF's name of a tensor → the name in a `DecoderOnly`; N is the number of a block.
NAMES = {
    "token_embd": "embedding.token_embedding",
    "output_norm": "norm",
    "blk.N.attn_norm": "blocks.N.norm1",
    "blk.N.attn_q": "blocks.N.attention.q_proj",
    "blk.N.attn_k": "blocks.N.attention.k_proj",
    "blk.N.attn_v": "blocks.N.attention.v_proj",
    "blk.N.attn_output": "blocks.N.attention.out_proj",
    "blk.N.ffn_norm": "blocks.N.norm2",
    "blk.N.ffn_gate": "blocks.N.feed_forward.gate_proj",
    "blk.N.ffn_up": "blocks.N.feed_forward.up_proj",
    "blk.N.ffn_down": "blocks.N.feed_forward.down_proj",
}


def load_smollm2(dtype: torch.dtype | None = torch.float32) -> tuple[DecoderOnly, Tokenizer]:
    """Return the model, in evaluation mode, and its tokenizer.

    The first call dequantises the weights and stores them in the user's cache directory; later calls load
    them from there.

    Args:
        dtype: of the weights, float32, bfloat16, or int8 (`Int8Linear`, with activations in bfloat16); None for
            the one in which this machine multiplies a matrix by a vector fastest, which is what generation
            spends its time on.

    Raises:
        FileNotFoundError: where the weights are not installed; the message says how to install them.
        ValueError: for a damaged file.

    Source: Allal et al. (2025), "SmolLM2: when Smol goes big"; Apache-2.0.
    """
    if dtype not in (None, torch.float32, torch.bfloat16, torch.int8):
        raise ValueError(
            f"dtype={dtype!r} must be torch.float32, torch.bfloat16, torch.int8 or None"
        )
    if dtype == torch.int8 and PRODUCT is None:
        raise ValueError(
            f"dtype={dtype!r} needs a product that PyTorch {torch.__version__} does not have; "
            f"choose torch.bfloat16"
        )
    path = weights_file()
    with torch.device("meta"), _Unfilled():
        model = DecoderOnly(CONFIG)
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    dtype = fastest_dtype() if dtype is None else dtype
    kept = torch.float32 if dtype == torch.int8 else dtype  # int8 is computed at once from float32
    stored = cache_file(kept)
    weights, tokenizer = load(stored, shapes)
    if weights is None:
        require_intact(path)
        reader = gguf.GGUFReader(path)
        weights = {name: weight.to(kept) for name, weight in dequantised(reader).items()}
        tokenizer = read_tokenizer(reader)
        store(stored, weights, tokenizer)
    model.load_state_dict(weights, strict=False, assign=True)
    model.lm_head.weight = model.embedding.token_embedding.weight
    model.requires_grad_(False).eval()
    return to_int8(model) if dtype == torch.int8 else model, tokenizer_from(tokenizer)


class _Unfilled(TorchFunctionMode):
    """Skip random initialisation: on the "meta" device it would import PyTorch's compiler, for seconds."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function.__name__ in ("normal_", "uniform_", "kaiming_uniform_"):
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def dequantised(reader: gguf.GGUFReader) -> dict[str, Tensor]:
    """Return all weights in float32, under the names of a `DecoderOnly`."""
    weights = {}
    for tensor in reader.tensors:
        values = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        weights[our_name(tensor.name)] = values
    return weights


def our_name(gguf_name: str) -> str:
    """Return the name in a `DecoderOnly` of a tensor of the GGUF file."""
    name, _, kind = gguf_name.rpartition(".")
    number = re.search(r"\d+", name)
    known = NAMES.get(re.sub(r"\d+", "N", name))
    if known is None or kind != "weight":
        raise ValueError(f"{gguf_name!r} is no tensor of a LLaMA")
    return known.replace("N", number[0] if number else "") + ".weight"


def fastest_dtype() -> torch.dtype:
    """Return the dtype of weights in which this machine multiplies the output matrix by a vector fastest."""
    full = nn.Linear(CONFIG.d_model, CONFIG.target_vocabulary, bias=False)
    half = copy.deepcopy(full).bfloat16()
    layers = {torch.float32: full, torch.bfloat16: half}
    if PRODUCT is not None:
        layers[torch.int8] = Int8Linear(full)
    return min(layers, key=lambda dtype: _seconds(layers[dtype]))


@torch.inference_mode()
def _seconds(layer: nn.Module) -> float:
    """Return the time of one product, the shortest of four."""
    vector, runs = torch.ones(1, CONFIG.d_model, dtype=layer.weight.dtype), []
    for _ in range(4):
        start = time.perf_counter()
        layer(vector)
        runs.append(time.perf_counter() - start)
    return min(runs)
