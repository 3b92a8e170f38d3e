"""One step of a gated recurrent unit."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.inputs import require_alike, require_floating, require_size, require_whole


class GRUCell(nn.Module):
    r"""Mix the old state with a new one; two gates say how.

    $$\begin{aligned}
    r &= \sigma(W_r x + U_r h), &\qquad n &= \tanh(W_n x + r \odot (U_n h)), \\
    z &= \sigma(W_z x + U_z h), &\qquad h' &= (1 - z) \odot n + z \odot h
    \end{aligned}$$

    (every product with a bias of its own). The reset gate $r$ says how much of the old state the new
    one sees, the update gate $z$ how much of the old state stays. This is PyTorch's form. Cho and
    others, and Bahdanau and others, apply $r$ to $h$ before $U_n$ instead of after it; Bahdanau and
    others also swap $z$ and $1 - z$.

    The three $W$ are one matrix on top of each other, in the order r, z, n, and so are the three $U$.

    Source: Cho and others, "Learning phrase representations using RNN encoder-decoder for statistical
    machine translation" (2014); `torch.nn.GRUCell`.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        require_whole(input_size=input_size, hidden_size=hidden_size)
        self.W = nn.Linear(input_size, 3 * hidden_size)
        self.U = nn.Linear(hidden_size, 3 * hidden_size)

    def forward(
        self, input: Float[Tensor, "*batch input_size"], state: Float[Tensor, "*batch hidden_size"]
    ) -> Float[Tensor, "*batch hidden_size"]:
        """Return the next state.

        Raises:
            ValueError: for an input or a state of another size than the cell was made for.
        """
        require_floating(input=input, state=state)
        require_alike(input=input, state=state)
        sizes = (self.W.in_features, self.U.in_features)
        require_size(sizes[0], f"the cell was made with input_size={sizes[0]}", input=input)
        require_size(sizes[1], f"the cell was made with hidden_size={sizes[1]}", state=state)
        r_input, z_input, n_input = self.W(input).chunk(3, dim=-1)
        r_state, z_state, n_state = self.U(state).chunk(3, dim=-1)
        r = torch.sigmoid(r_input + r_state)  # (batch, hidden_size), like all that follows
        z = torch.sigmoid(z_input + z_state)
        n = torch.tanh(n_input + r * n_state)
        return (1 - z) * n + z * state
