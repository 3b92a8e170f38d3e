"""The diagrams of notebook 02 hold the numbers that attention computes."""

import torch

from course_lib.plots import broadcast_diagram, score_diagram


def texts(made):
    return [text.get_text().replace("−", "-") for axes in made.axes for text in axes.texts]


def test_the_numbers_of_the_score_diagram_are_those_of_attention():
    query = torch.tensor([1.0, 1.0])
    key = torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, -1.0], [-1.0, 0.0]])
    value = torch.tensor([[4.0, 0.0], [0.0, 4.0], [2.0, 2.0], [8.0, 8.0]])
    scores = [(query * one).sum().item() for one in key]
    weights = [2.718281828**score / sum(2.718281828**one for one in scores) for score in scores]
    output = sum(weight * one for weight, one in zip(weights, value, strict=True))
    drawn = [text for text in texts(score_diagram()) if text.lstrip("-")[:1].isdigit()]
    wanted = [f"{x:.0f}" for x in (*query.tolist(), *key.flatten().tolist(), *scores)]
    wanted += [f"{weight:.3f}" for weight in weights]
    wanted += [f"{x:.0f}" for x in value.flatten().tolist()]
    products = [
        weight * x for weight, one in zip(weights, value, strict=True) for x in one.tolist()
    ]
    wanted += [f"{x:.2f}" for x in (*products, *output.tolist())]
    assert drawn == wanted
    for number in (*wanted[10:18], *wanted[-2:]):
        assert number.lstrip("-") in score_diagram.__doc__


def test_the_shapes_of_the_broadcast_diagram_broadcast():
    shapes = [text for text in texts(broadcast_diagram()) if text.startswith("(")]
    sizes = {"query": 3, "key": 4, "hidden": 5, "1": 1}
    one, other, both, scores = (
        tuple(sizes[axis] for axis in shape.strip("()").split(", ")) for shape in shapes
    )
    assert torch.broadcast_shapes(one, other) == both and both[:2] == scores
