"""GRPO: its loss and advantages are TRL's, samples and their probabilities are the model's, and the record is whole."""

import pytest
import torch
from torch.testing import assert_close

from course_lib.experiments import grpo, lora
from course_lib.experiments.runs import read, where
from course_lib.transformer import DecoderOnly, TransformerConfig

pytestmark = pytest.mark.usefixtures("without_annotations")

REWARDS = torch.tensor([[0.0, 1, 0, 0], [1, 1, 0, 1]], dtype=torch.float64)
LENGTHS = torch.tensor([3, 2, 3, 1, 3, 3, 2, 3])
#: What the code of TRL 1.16.0 gives for `batch`: `GRPOTrainer._compute_loss` with loss_type="grpo", beta=0.04 and
#: epsilon=0.2, its gradient with respect to the log-probabilities, and the advantages that it computes from REWARDS.
TRL_LOSS = 0.09705912985858747
TRL_GRADIENT = """
    0.0212611371 0.0347589702 0.0357213227 -0.1028778809 -0.0600638501 0 0.0180313207 0.0312308770
    0.0376372953 0.0784451553 0 0 -0.0147229535 0.0003972067 0.0000669853 -0.0004266129 -0.0180794191
    -0.0118425652 0.0004492702 0.1031924397 0 -0.0002976499 -0.0213019130 -0.0128251111
"""
TRL_ADVANTAGES = [-0.4999, 1.4997, -0.4999, -0.4999, 0.4999, 0.4999, -1.4997, 0.4999]


def batch():
    """Log-probabilities of 8 samples of at most 3 tokens: of the model, of what sampled them, and of a reference."""
    i = torch.arange(24, dtype=torch.float64).view(8, 3)
    logp = -1 - (i * 0.37) % 1
    return logp.requires_grad_(), logp.detach() - 0.6 * i.sin(), logp.detach() - 0.3 * i.cos()


def mask():
    return torch.arange(3) < LENGTHS[:, None]


def test_loss_gradient_and_advantages_are_those_of_trl():
    advantage = grpo.advantages(REWARDS)
    assert_close(advantage.flatten().tolist(), TRL_ADVANTAGES, atol=5e-5, rtol=0)
    logp, old, reference = batch()
    loss = grpo.grpo_loss(logp, old, reference, advantage.flatten(), mask())
    loss.backward()
    assert abs(loss.item() - TRL_LOSS) < 1e-12
    wanted = torch.tensor([float(one) for one in TRL_GRADIENT.split()], dtype=torch.float64)
    assert_close(logp.grad.flatten(), wanted, atol=1e-9, rtol=0)


def test_a_group_whose_rewards_are_equal_teaches_nothing():
    advantage = grpo.advantages(torch.tensor([[1.0, 1, 1], [0, 0, 0], [0, 1, 0]]))
    assert advantage[:2].abs().max() == 0 and advantage[2, 1] > 1
    logp, _, _ = batch()
    grpo.grpo_loss(logp, logp.detach(), logp.detach(), torch.zeros(8), mask()).backward()
    assert logp.grad.abs().max() == 0


def test_a_group_of_one_is_refused():
    with pytest.raises(ValueError, match="groups of 1; a group needs two"):
        grpo.advantages(torch.ones(3, 1))


class Characters:
    """A tokenizer of one token per character."""

    eos_id = 2

    def encode(self, text, *, split_special_tokens=True):
        return [3 + ord(c) % 8 for c in text]

    def decode(self, ids):
        return "".join(map(str, ids))


def small_model(seed=0):
    torch.manual_seed(seed)
    sizes = {"target_vocabulary": 12, "d_model": 16, "num_heads": 2, "decoder_layers": 2}
    config = TransformerConfig(**sizes, d_ff=16, norm="pre", positions="rotary", pad_id=0)
    return DecoderOnly(config).eval()


def test_log_probs_of_a_group_are_those_of_each_text_by_itself_with_gradients():
    """Prompts of different lengths, each read once for its three answers."""
    model, pad = small_model(), 0
    prompts = [[5, 6, 7], [9, 8, 7, 6, 5]]
    answers = torch.tensor([[3, 4, 2, pad], [4, 2, pad, pad], [9, 9, 9, 2]] * 2)
    weight = model.blocks[0].attention.v_proj.weight

    def gradient(total):
        return torch.autograd.grad(total, weight)[0]

    found = grpo.log_probs(model, lora.left_padded(prompts, pad), answers)
    alone, kept = [], answers != pad
    for row, answer in enumerate(answers):
        prompt, said = prompts[row // 3], answer[answer != pad]
        logits = model(torch.tensor([prompt + said.tolist()]))[0, len(prompt) - 1 : -1]
        alone.append(logits.log_softmax(-1)[torch.arange(len(said)), said])
    assert_close(found[kept], torch.cat(alone), atol=1e-5, rtol=0)
    assert_close(gradient(found[kept].sum()), gradient(torch.cat(alone).sum()), atol=1e-4, rtol=0)


def test_samples_follow_the_probabilities_of_their_own_prompt_and_end_in_padding():
    model, tokenizer = small_model(), Characters()
    with torch.no_grad():  # so that the prompts matter
        for parameter in model.blocks.parameters():
            parameter.mul_(3)
    dates = lora.english_dates(2)
    torch.manual_seed(1)
    answers = grpo.sampled(model, tokenizer, dates, group=16_000, length=3)
    for row, one in enumerate(dates):
        prompt = torch.tensor([tokenizer.encode(lora.turns(one.text))])
        own = answers[16_000 * row : 16_000 * (row + 1)]
        p = model(prompt)[0, -1].softmax(-1)  # of the first token
        assert_close(own[:, 0].bincount(minlength=12) / 16_000, p, atol=0.03, rtol=0)
        most = p.argmax()
        begun = own[own[:, 0] == most]
        p = model(torch.cat([prompt, most.view(1, 1)], dim=1))[0, -1].softmax(-1)
        assert_close(begun[:, 1].bincount(minlength=12) / len(begun), p, atol=0.05, rtol=0)
    after = answers[:, :-1].eq(tokenizer.eos_id).cumsum(dim=1) > 0
    assert after.any() and (answers[:, 1:][after] == 0).all()


def test_what_is_merged_computes_what_it_computed_before():
    model, tokens = small_model(), torch.tensor([[3, 4, 5, 6]])
    for parameter in lora.add_lora(model, rank=2):
        torch.nn.init.normal_(parameter)
    with torch.no_grad():
        before = model(tokens)
        assert_close(grpo.merge(model)(tokens), before, atol=1e-4, rtol=0)
    assert not any(isinstance(part, lora.LoRALinear) for part in model.modules())


def test_the_programs_that_check_answers():
    date, other = lora.english_dates(2)
    assert grpo.is_right(date.iso, date) and not grpo.is_right(date.iso + ".", date)
    assert grpo.has_year(f"{date.iso[:4]}, {date.iso[:4]}", date)
    assert not grpo.has_year(date.iso[5:], date)
    said = [date.iso, "", other.iso, date.iso]
    found = grpo.rewards_of(grpo.is_right, said, [date, other])
    assert found.tolist() == [[1, 0], [1, 0]]


def test_every_run_of_the_plan_is_recorded():
    rows = read("grpo")
    for one in grpo.PLAN:
        count = len(grpo.BUDGETS) if "lr" in one else 1
        assert len(where(rows, **one)) == count, one


def test_both_arms_compute_equally_many_tokens():
    arms = [grpo.recorded(*best, grpo.BUDGETS[-1]) for best in grpo.BEST.items()]
    for one, other in zip(*arms, strict=True):
        assert 0.9 < one["tokens"] / other["tokens"] < 1.1


@pytest.mark.parametrize("arm", grpo.BEST)
def test_the_best_rate_lies_inside_the_sweep(arm):
    right = {
        lr: sum(row["samples right"] for row in grpo.recorded(arm, lr, grpo.BUDGETS[-1]))
        for lr in grpo.RATES[arm]
    }
    assert max(right, key=right.get) == grpo.BEST[arm]
    assert min(right) < grpo.BEST[arm] < max(right)
