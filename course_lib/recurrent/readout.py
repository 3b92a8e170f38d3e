"""From hidden state, previous token and context vector to logits."""

from torch import Tensor, nn

from course_lib.checks import recurrent as checks
from course_lib.validation import validated


class MaxoutReadout(nn.Module):
    r"""$g(y, s, c) = W t$, where $t_k$ is the larger of $\tilde t_{2k}$ and $\tilde t_{2k+1}$.

    $$\tilde t = U s + V y + C c$$

    $y$ is the embedding of the previous token, $s$ the hidden state, $c$ the context vector. $\tilde t$ has
    dimension 2 × readout_size. Bahdanau et al. print $s_{i-1}$ for $s$ in their appendix and $s_i$ in
    equation 4; the course follows equation 4.

    Source: Goodfellow et al., "Maxout networks" (2013); Bahdanau, Cho and Bengio (2015),
    appendix A.2.2.
    """

    @validated(checks.readout_init)
    def __init__(
        self,
        hidden_size: int,
        embedding_size: int,
        context_size: int,
        readout_size: int,
        vocabulary_size: int,
    ) -> None:
        super().__init__()
        self.U = nn.Linear(hidden_size, 2 * readout_size)
        self.V = nn.Linear(embedding_size, 2 * readout_size, bias=False)
        self.C = nn.Linear(context_size, 2 * readout_size, bias=False)
        self.W = nn.Linear(readout_size, vocabulary_size)

    def forward(self, state: Tensor, word: Tensor, context: Tensor) -> Tensor:
        """Return the logits of the next token, (…, vocabulary)."""
        pieces = self.U(state) + self.V(word) + self.C(context)  # (…, 2 × readout_size)
        return self.W(pieces.unflatten(-1, (-1, 2)).amax(dim=-1))
