"""What benchmarks compare the course with, and their clock."""

import time

import torch
from torch import Tensor, nn

from course_lib.train.settings import Settings
from course_lib.transformer import Transformer
from course_lib.transformer.convert import from_torch
from course_lib.transformer.embeddings import InputEmbedding
from course_lib.transformer.stacks import initialise


def clock() -> float:
    """Seconds: of the thread where there is one, for other programs hardly change it; on a GPU when it has finished."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.thread_time() if torch.get_num_threads() == 1 else time.perf_counter()


class PyTorchTransformer(nn.Module):
    """Embeddings and output layer of the course around `nn.Transformer`; it decodes through `from_torch`."""

    pad_id = 0

    def __init__(self, settings: Settings, vocabulary: int) -> None:
        super().__init__()
        self.config = config = settings.model_config(vocabulary)
        positions = config.make_positions(bidirectional=True).embedding
        self.embedding = InputEmbedding(vocabulary, config, positions)
        self.transformer = nn.Transformer(
            config.d_model, config.num_heads, config.encoder_layers, config.decoder_layers, config.d_ff,
            config.dropout, batch_first=True, norm_first=config.norm == "pre",
        )  # fmt: skip
        self.lm_head = nn.Linear(config.d_model, vocabulary, bias=False)
        initialise(self)
        self.lm_head.weight = self.embedding.token_embedding.weight
        self.vocabulary_size = vocabulary

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == self.pad_id
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1]).isinf()
        x = self.transformer(
            self.embedding(source),
            self.embedding(target),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.lm_head(x)

    def ours(self) -> Transformer:
        """Return the same function in the course's layers, which decode with a cache."""
        model = from_torch(
            self.transformer,
            target_vocabulary=self.vocabulary_size,
            tie_embeddings=True,
            positions=self.config.positions,
        )
        model.lm_head.load_state_dict(self.lm_head.state_dict())
        return model.eval()

    def prefill(self, source: Tensor, *, bos_id: int):
        self.decoder = [self.ours()]  # in a list: no submodule
        return self.decoder[0].prefill(source, bos_id=bos_id)

    def decode_step(self, token: Tensor, state) -> Tensor:
        return self.decoder[0].decode_step(token, state)
