"""Small models with random weights that decode, and what they must generate."""

import itertools

import torch

from course_lib.transformer import Transformer, TransformerConfig

BATCH, SOURCE = 3, 5  # no two axes are equally long
TARGETS, SOURCES, PAD, BOS, EOS = 8, 11, 0, 1, 2
INF = float("inf")


def sized(**choices):
    sizes = {
        "target_vocabulary": TARGETS, "source_vocabulary": SOURCES, "d_model": 12, "num_heads": 3,
        "encoder_layers": 1, "decoder_layers": 2, "d_ff": 7, "dropout": 0.0, "max_length": 30,
        "norm": "pre",
    }  # fmt: skip
    return TransformerConfig(**(sizes | choices))


def wild(layer, dtype=torch.float64):
    """Large random matrices and no biases, so that different sources give different sequences."""
    for name, parameter in layer.named_parameters():
        plain = torch.full(parameter.shape, float(name.endswith("weight")))
        parameter.data = (torch.randn(parameter.shape) if parameter.dim() > 1 else plain).to(dtype)
    return layer.eval()


def model(made=Transformer, seed=0, **choices):
    torch.manual_seed(seed)
    return wild(made(sized(**choices)))


def words(vocabulary, length, *padded):
    tokens = torch.randint(3, vocabulary, (len(padded), length))
    for row, count in zip(tokens, padded, strict=True):
        row[length - count :] = PAD
    return tokens


def one_by_one(model, source, max_length, bos=BOS, eos=EOS, pad=PAD):
    """Greedy decoding without a cache or a batch: every step recomputes the whole sequence."""
    lines = []
    with torch.no_grad():
        for row in source:
            row, line = row[row != pad][None], []
            while len(line) < max_length and line[-1:] != [eos]:
                if isinstance(model, Transformer):
                    logits = model(row, torch.tensor([[bos, *line]]))
                else:
                    logits = model(torch.cat([row, torch.tensor([line], dtype=torch.int64)], 1))
                scores = logits[0, -1].tolist()
                line.append(scores.index(max(scores)))
            lines.append(line)
    return lines


def rectangle(lines, max_length, pad=PAD):
    """The first tokens of each line, padded."""
    lines = [line[:max_length] for line in lines]
    longest = max(map(len, lines))
    return torch.tensor([line + [pad] * (longest - len(line)) for line in lines])


def every_line(tokens, max_length, eos=EOS):
    """All that can be generated: with an end, or as long as allowed."""
    others = [token for token in tokens if token != eos]
    for length in range(1, max_length + 1):
        for line in itertools.product(others, repeat=length - 1):
            yield [*line, eos]
            if length == max_length:
                yield from ([*line, token] for token in others)


def always(*tokens, made=Transformer, **choices):
    """A model that generates these tokens whatever the source, and then repeats the last.

    Its blocks change nothing; only the learned position embedding decides.
    """
    one = made(sized(positions="learned", norm="pre", final_norm=False, **choices)).double().eval()
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.zero_()
        part = one.target_embedding if made is Transformer else one.embedding
        for place in range(30):
            token = tokens[min(place, len(tokens) - 1)]
            part.positions.table[place, token] = 1.0
        one.lm_head.weight.copy_(torch.eye(TARGETS, 12))
    return one


def leaning(one, scale=1.0, *, only=None, out=-INF, **bias):
    """Flatten a model's distribution, add a bias to some logits, and rule out all tokens but `only`."""
    added = torch.zeros(one.config.target_vocabulary, dtype=torch.float64)
    for name, number in bias.items():
        added[{"pad": PAD, "bos": BOS, "eos": EOS}[name]] += number
    if only is not None:
        ruled_out = torch.ones(len(added), dtype=torch.bool)
        ruled_out[list(only)] = False
        added[ruled_out] += out
    one.lm_head.register_forward_hook(
        lambda layer, given, logits: logits * scale + added.to(logits)
    )
    return one


def competing(made, seed, **choices):
    """A model whose sequences end early and late, with many that score nearly alike."""
    return leaning(model(made, seed=seed, target_vocabulary=20, **choices), 0.25, eos=1.0 + seed % 3)  # fmt: skip


#: A table model in which the most probable first word does not lead to the most probable sentence.
TABLE = {
    (): {"the": 0.5, "a": 0.4, "one": 0.1},
    ("the",): {"cat": 0.4, "dog": 0.35, "bird": 0.25},
    ("a",): {"bird": 0.9, "<eos>": 0.1},
    ("one",): {"dog": 1.0},
}
