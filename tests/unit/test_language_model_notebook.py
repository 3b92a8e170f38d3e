"""What notebook 13 states as recorded is what a fresh run gives."""

import ast

import nbformat
import torch
import torch.nn.functional as F
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from course_lib.exercises import EXERCISES
from course_lib.experiments.long_context import (
    LENGTH,
    METHODS,
    PARTS,
    documentation_parts,
    loss_by_position,
    scale_positions,
)
from course_lib.tools import normal_form
from course_lib.transformer import DecoderOnly, TransformerConfig
from course_lib.transformer.positions import rotary
from course_lib.transformer.positions.sinusoidal import frequencies
from tests.helpers.language_model import needs_model, smollm2
from tests.helpers.llama import llama


def literals():
    """The prompt, and Hugging Face's logits and tokens, as the notebook states them."""
    path = normal_form.NOTEBOOKS / "13_language_model.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    source = next(cell.source for cell in cells if cell.source.startswith("prompt = "))
    assigned = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return [ast.literal_eval(node.value) for node in assigned]


@needs_model
@torch.no_grad()
def test_the_notebook_states_what_hugging_face_gives():
    model, tokenizer = smollm2()
    prompt, logits, generated = literals()
    theirs, tokens = llama(model), torch.tensor([tokenizer.encode(prompt)])
    found = theirs(tokens).logits[0, -1].topk(5).values
    assert (found - torch.tensor(logits)).abs().max() < 5e-4
    given = {"attention_mask": torch.ones_like(tokens), "do_sample": False}
    output = theirs.generate(tokens, max_new_tokens=48, **given)
    assert output[0, tokens.shape[1] :].tolist() == generated


@needs_model
@torch.no_grad()
def test_the_template_with_two_bugs_gets_the_replies_that_the_notebook_quotes():
    model, tokenizer = smollm2()
    names = {"start": "<|im_start|>", "end": "<|im_end|>", "newline": "\n"}
    names |= {role: role for role in ("system", "user", "assistant")}
    ids = {name: tokenizer.encode(text, split_special_tokens=False) for name, text in names.items()}
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    hunt = EXERCISES["hunt_template"]

    def reply(question):
        chat = [{"role": "user", "content": question}]
        messages = [("system", tokenizer.encode(system)), ("user", tokenizer.encode(question))]
        template = tokenizer.apply_chat_template(chat)
        assert hunt.solution(messages, ids).tolist() == template
        cache, new, said = model.new_cache(), hunt.given(messages, ids)[None], []
        for _ in range(12):
            said.append(model(new, cache=cache)[0, -1].argmax().item())
            new = torch.tensor([said[-1:]])
        return tokenizer.decode(said)

    assert "Canberra" in reply("What is the capital of Australia?")
    assert reply("Name three colours.").startswith("I'm not sure what I'm supposed to do.")


def test_rows_reordered_for_the_half_layout_give_the_same_scores():
    w_q, w_k, w_v, x = (torch.randn(n, 5) for n in (4 * 6, 2 * 6, 2 * 6, 7))
    fused = EXERCISES["hunt_layout"].reference(w_q, w_k, w_v, 6)
    scores = []
    for q, k, layout in ((w_q, w_k, "interleaved"), (*fused.split([24, 12, 12])[:2], "half")):
        q, k = ((x @ w.T).unflatten(-1, (-1, 6)).transpose(0, 1) for w in (q, k))
        q, k = (rotary(one, torch.arange(7), layout=layout) for one in (q, k))
        scores.append(q @ k.repeat_interleave(2, dim=0).mT)
    torch.testing.assert_close(*scores)
    assert torch.equal(fused[36:], w_v)


def small_model():
    sizes = {
        "target_vocabulary": 23,
        "d_model": 128,
        "num_heads": 2,
        "decoder_layers": 2,
        "d_ff": 16,
    }
    rope = {"positions": "rotary", "rope_theta": 100_000.0}
    return DecoderOnly(TransformerConfig(**sizes, **rope, norm="pre", pad_id=22)).eval()


def test_the_loss_by_position_is_that_of_one_pass():
    model = small_model()
    tokens = torch.randint(22, (21,))
    logits = model(tokens[None, :-1])[0]
    each = F.cross_entropy(logits, tokens[1:], reduction="none")
    found = loss_by_position(model, tokens, bucket=5)
    assert torch.allclose(found, each.view(4, 5).mean(dim=1), atol=1e-5)


def test_the_frequencies_are_those_of_the_layers():
    model, tokens = small_model(), torch.randint(22, (1, 30))
    before = model(tokens)
    scale_positions(model, "unchanged")
    assert torch.allclose(model(tokens), before, atol=1e-5)
    for method in METHODS.keys() - {"unchanged"}:
        scale_positions(model, method)
        assert (model(tokens) - before).abs().max() > 1e-4, method


def test_a_larger_theta_is_that_of_ntk_aware_scaling():
    larger = frequencies(64, 100_000.0 * 2 ** (64 / 62))
    assert torch.allclose(METHODS["larger θ"](frequencies(64, 100_000.0)), larger)


def test_llama3_scaling_is_hugging_faces():
    options = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "factor": 2.0}
    config = LlamaConfig(
        hidden_size=576,
        num_attention_heads=9,
        max_position_embeddings=16_384,
        rope_theta=100_000.0,
        rope_scaling={
            "rope_type": "llama3",
            "rope_theta": 100_000.0,
            "original_max_position_embeddings": 8192,
            **options,
        },
    )
    theirs, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    ours = METHODS["Llama 3"](frequencies(64, 100_000.0))
    assert torch.allclose(ours.float(), theirs, rtol=1e-5)


@needs_model
def test_the_parts_are_disjoint_and_long_enough():
    parts = documentation_parts(smollm2()[1])
    assert parts.shape == (PARTS, LENGTH + 1)
    assert len({tuple(part[:50].tolist()) for part in parts}) == PARTS
