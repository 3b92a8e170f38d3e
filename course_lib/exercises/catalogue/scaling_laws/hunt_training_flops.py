"""Bug hunt: a bill for training."""

from dataclasses import replace
from itertools import product

import torch

from course_lib import messages
from course_lib.exercises.edits import mistakes


def training_flops(d_model, layers, vocabulary, length, tokens, tied):
    blocks = 12 * layers * d_model**2
    head = vocabulary * d_model  # a shared matrix is multiplied all the same
    attention = layers * 4 * length * d_model  # FLOPs of the forward pass, per token
    flops_per_token = 6 * (blocks + head) + 3 * attention
    return flops_per_token * tokens.double()  # the product exceeds int64 for large models


HEAD, PASSES = "head = vocabulary * d_model ->", "head) + 3 * attention ->"
COST = "4 · length · d_model FLOPs for each layer and token in the forward pass"
HEADS = {
    f"{HEAD} head = torch.where(tied, 0, vocabulary * d_model)": "the LM head is multiplied by every token, also where "
    "it shares its matrix, and the embedding never is: it is a lookup",
    f"{HEAD} head = torch.where(tied, 1, 2) * vocabulary * d_model": "you count the untied embedding as well, and it is "
    "a lookup: only the LM head is multiplied by every token",
    f"{HEAD} head = 2 * vocabulary * d_model": "you count the embedding as well as the LM head, and it is a lookup: only "
    "the LM head is multiplied by every token",
    f"{HEAD} head = 0": "the LM head is missing, and it is multiplied by every token",
}
PRODUCTS = {
    f"{PASSES} head) + attention": f"the products of attention cost {COST}, and twice as many in the backward pass",
    f"{PASSES} head) + 2 * attention": "you count the products of attention twice; the backward pass costs twice as much "
    "as the forward pass, which makes three times",
    f"{PASSES} head) + 6 * attention": "you multiply the products of attention by 6, but they are FLOPs already and not "
    "weights; with the backward pass they count three times",
    f"{PASSES} head) + 3 * attention // 2": "you count half of the products of attention, as if only the causal half of "
    f"the square were computed; here the whole square counts, {COST}, and twice as many in the backward pass",
    f"{PASSES} head)": f"the products of attention are missing: {COST}, and twice as many in the backward pass",
    "layers * 4 * length * d_model -> layers * 4 * d_model": "your products of attention do not depend on the length: "
    f"they cost {COST}",
}
INTEGERS = {
    "flops_per_token * tokens.double() -> flops_per_token * tokens": "GPT-3's bill is 3.2e23 FLOPs, int64 ends at "
    "9.2e18, and a larger product overflows without an error: one factor must be a float before you multiply",
}
FORMS = HEADS, PRODUCTS, INTEGERS  # of each bug, edits → symptom, the form given first
AS_GIVEN = [next(iter(forms.items())) for forms in FORMS]
BUGS = "".join(f"{edits}\n    {symptom}\n" for edits, symptom in AS_GIVEN)


def _left():
    """What is left of the bugs, each in the form given or in another one, with a symptom of its own."""
    for bugs_left in product(*(({"": ""} | forms).items() for forms in FORMS)):
        left = [(edits, symptom) for edits, symptom in bugs_left if edits]
        if left and list(bugs_left) != AS_GIVEN:
            symptoms = "; ".join(symptom for _, symptom in left)
            said = messages.BUGS_LEFT.format(repaired=3 - len(left), count=3, symptoms=symptoms)
            table = "\n+ ".join(edits for edits, _ in left) + f"\n    {said}"
            yield from (replace(one, left=True) for one in mistakes(training_flops, table))


LEFT = tuple(_left())
MISTAKES = """
6 * (blocks -> 4 * (blocks
    The backward pass needs two products for each one of the forward pass: 6 FLOPs for each weight and token.
6 * (blocks -> 3 * (blocks
    A multiplication and an addition are 2 FLOPs: 6 for each weight and token, 2 of them forward.
6 * (blocks -> 2 * (blocks
    You count the forward pass of the weights only. The backward pass costs twice as much: 6 FLOPs for each weight and
    token.
12 * layers -> layers
    A block has 12 · d_model² weights: 4 in the attention and 8 in the FFN.
12 * layers * -> 12 *
    You count the weights of one block. There are `layers` of them.
layers * 4 * length -> 4 * length
    You count the products of attention in one layer. There are `layers` of them.
tokens.double() -> tokens.double() * length
    You multiply by `length` as well. `tokens` are all tokens, in all sequences.
"""

CASES = (
    dict(
        d_model=torch.tensor([2]),
        layers=torch.tensor([1]),
        vocabulary=torch.tensor([5]),
        length=torch.tensor([3]),
        tokens=torch.tensor([1]),
        tied=torch.tensor([True]),
    ),
    dict(  # GPT-3: 3.23e23
        d_model=torch.tensor([12_288]),
        layers=torch.tensor([96]),
        vocabulary=torch.tensor([50_257]),
        length=torch.tensor([2048]),
        tokens=torch.tensor([300_000_000_000]),
        tied=torch.tensor([True]),
    ),
    dict(
        d_model=torch.tensor([4, 8]),
        layers=torch.tensor([2, 3]),
        vocabulary=torch.tensor([10, 50]),
        length=torch.tensor([7, 64]),
        tokens=torch.tensor([100, 1000]),
        tied=torch.tensor([False, True]),
    ),
)
HINTS = """
Compute two models by hand that differ in `tied` only. Which products does each of them call?
Tying saves parameters. Does it save FLOPs? And which of the terms have a backward pass?
How many FLOPs did GPT-3 take, and which is the largest integer of 64 bits?
The head is vocabulary * d_model for every model; attention's products count three times; multiply by tokens.double().
"""
DIFFERENTIABLE = False
