"""Each sample against the others."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def rloo_advantages(rewards):
    group = rewards.shape[1]
    others = (rewards.sum(dim=1, keepdim=True) - rewards) / (group - 1)  # (prompt, group)
    return rewards - others


def reference(rewards):
    """Sample by sample."""
    rows = torch.zeros_like(rewards)
    for i in range(rewards.shape[1]):
        others = torch.cat([rewards[:, :i], rewards[:, i + 1 :]], dim=1)
        rows[:, i] = rewards[:, i] - others.mean(dim=1)
    return rows


OTHERS = "(rewards.sum(dim=1, keepdim=True) - rewards) / (group - 1)"
MISTAKES = f"""
{OTHERS} -> rewards.mean(dim=1, keepdim=True)
    You compare each sample with the mean of its whole group, itself included. Leave it out: the mean of the others.
{OTHERS} -> (rewards.sum(dim=1, keepdim=True) - rewards) / group
    You divide by the size of the group. There are group - 1 others.
{OTHERS} -> rewards.sum(dim=1, keepdim=True) / (group - 1)
    The sum still holds the sample itself. Take it away before you divide.
{OTHERS} -> rewards.sum(dim=1, keepdim=True) - rewards
    This is the sum of the others. Divide by how many there are, group - 1.
{OTHERS} -> rewards.mean()
{OTHERS} -> (rewards.sum() - rewards) / (rewards.numel() - 1)
    You compare a sample with samples of other prompts. A prompt may be easier than another: compare within a row.
{OTHERS} -> rewards.mean(dim=0, keepdim=True)
{OTHERS} -> (rewards.sum(dim=0, keepdim=True) - rewards) / (rewards.shape[0] - 1)
    You compare along the prompts. The group of a prompt is its row: dim=1.
return rewards - others -> return others - rewards
    The sign is wrong: a sample that is better than the others has a positive advantage.
return rewards - others -> return others
    This is what a sample is compared with. The advantage is its reward minus that.
return rewards - others -> return (rewards - others) / (rewards.std(dim=1, keepdim=True) + 1e-4)
return rewards - others -> return (rewards - others) / rewards.std(dim=1, keepdim=True)
    You divide by the standard deviation, as GRPO does. Here it is left out.
{OTHERS} -> rewards.mean(dim=1, keepdim=True)
+ return rewards - others -> return (rewards - others) / (rewards.std(dim=1, keepdim=True) + 1e-4)
    These are the advantages of GRPO. Here each sample is compared with the mean of the others, and no standard
    deviation is used.
return rewards - others -> return (rewards - others).sum(dim=1)
return rewards - others -> return (rewards - others).mean(dim=1)
    Return one number per sample, (prompt, group).
"""

CASES = (
    dict(rewards=torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])),
    dict(rewards=torch.tensor([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]])),
    dict(rewards=random_tensor(3, 5, seed=0)),
)
HINTS = """
How do you get the mean of all numbers of a row but one?
The sum of the others is the sum of the row minus the number itself; there are group - 1 of them.
rewards - (rewards.sum(dim=1, keepdim=True) - rewards) / (rewards.shape[1] - 1).
"""
