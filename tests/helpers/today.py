"""Modules of `transformers` with tiny configurations, and our modules that share their weights."""

import torch


def share(ours, theirs, names):
    """Give `ours` the parameters of `theirs`: our name → their name; their rotations stay their own."""
    weights = dict(theirs.named_parameters()) | dict(theirs.named_buffers())
    ours.load_state_dict({mine: weights[name].detach() for mine, name in names.items()})
    return ours


def randomise(module, spread=0.3):
    """Draw every parameter anew: the package leaves some empty and sets some to 0 or 1, which hides mistakes."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=spread)
    return module.eval()


def compare_modules(ledger, ours, theirs, x, names, within):
    """Compare outputs, and gradients of input and weights, of two modules on the same input.

    `ours` and `theirs` are pairs of a function and a module; `names` maps our parameters to theirs.
    """
    (mine, my_module), (other, their_module) = ours, theirs
    a, b = (x.clone().requires_grad_() for _ in range(2))
    output, expected = mine(a), other(b)
    ledger.compare(output, expected, within=within)
    mix = torch.randn_like(expected)
    parameters = dict(my_module.named_parameters())
    others = dict(their_module.named_parameters())
    leaves = [parameters[name] for name in names if name in parameters]
    their_leaves = [others[names[name]] for name in names if name in parameters]
    slopes = torch.autograd.grad(output, [a, *leaves], mix.to(output))
    wanted = torch.autograd.grad(expected, [b, *their_leaves], mix)
    for slope, want in zip(slopes, wanted, strict=True):
        size = 1 + want.abs().max()
        ledger.compare(slope / size, want / size, within=within, backward=True)
