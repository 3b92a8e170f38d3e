"""One step of a gated recurrent unit."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.checks import recurrent as checks
from course_lib.validation import validated


class GRUCell(nn.Module):
    r"""Compute the next hidden state, a gated mixture of the previous one and a candidate.

    $$\begin{aligned}
    r &= \sigma(W_r x + U_r h), &\qquad n &= \tanh(W_n x + r \odot (U_n h)), \\
    z &= \sigma(W_z x + U_z h), &\qquad h' &= (1 - z) \odot n + z \odot h
    \end{aligned}$$

    Every product has a bias of its own. The reset gate $r$ controls how much the candidate $n$ sees of the
    previous hidden state $h$, the update gate $z$ how much of $h$ is kept. This is PyTorch's form. Cho
    et al. and Bahdanau et al. apply $r$ to $h$ before $U_n$ instead of after it; Bahdanau et al. also exchange
    $z$ and $1 - z$.

    The three $W$ are the rows of one matrix, in the order r, z, n, and so are the three $U$.

    Args:
        input_size: the dimension of the input $x$.
        hidden_size: the dimension of the hidden state $h$.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
    machine translation" (2014); `torch.nn.GRUCell`.
    """

    @validated(checks.cell_init)
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.W = nn.Linear(input_size, 3 * hidden_size)
        self.U = nn.Linear(hidden_size, 3 * hidden_size)

    @validated(checks.cell_forward)
    def forward(
        self, input: Float[Tensor, "*batch input_size"], state: Float[Tensor, "*batch hidden_size"]
    ) -> Float[Tensor, "*batch hidden_size"]:
        """Return the next hidden state.

        Raises:
            ValueError: for an input or a state of another dimension than the cell was made for.
        """
        r_input, z_input, n_input = self.W(input).chunk(3, dim=-1)
        r_state, z_state, n_state = self.U(state).chunk(3, dim=-1)
        r = torch.sigmoid(r_input + r_state)  # (…, hidden_size), as all that follows
        z = torch.sigmoid(z_input + z_state)
        n = torch.tanh(n_input + r * n_state)
        return (1 - z) * n + z * state
