"""One process or several: what `torchrun` starts, each with its share of every batch."""

import os
import time
import uuid
from datetime import timedelta
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


class Processes(NamedTuple):
    """The place of this process among those that train together.

    Attributes:
        rank: its number, from 0; the first one evaluates, saves and prints.
        world: how many there are.
        device: where this one computes.
    """

    rank: int
    world: int
    device: torch.device

    @classmethod
    def joined(cls, device: str) -> "Processes":
        """Join the others that `torchrun` started; alone where it did not.

        Args:
            device: "cpu", "cuda", "mps" (Apple's GPUs; untested), or "auto" for a GPU of CUDA if there is one.

        Raises:
            ValueError: for a device that is not usable here.
        """
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        world = int(os.environ.get("WORLD_SIZE", "1"))
        local = int(os.environ.get("LOCAL_RANK", "0"))
        _require_usable(device, local)
        where = torch.device(device, local) if device == "cuda" else torch.device(device)
        if device == "cuda":
            torch.cuda.set_device(where)
        if world > 1 and not dist.is_initialized():
            backend = "nccl" if device == "cuda" else "gloo"
            store, rank, world = next(dist.rendezvous("env://"))
            dist.init_process_group(
                backend,
                store=_of_this_start(store, rank, world),
                rank=rank,
                world_size=world,
                timeout=timedelta(minutes=30),
            )
        return cls(int(os.environ.get("RANK", "0")), world, where)

    @property
    def first(self) -> bool:
        """Whether this is the process that evaluates, saves and prints."""
        return self.rank == 0

    def wrapped(self, model: nn.Module) -> nn.Module:
        """Return the model as it is called in training: its gradients become means over the processes."""
        return model if self.world == 1 else DistributedDataParallel(model)

    def shared(self, text: str | None) -> str:
        """Return the text of the first process."""
        texts = [text]
        if self.world > 1:
            dist.broadcast_object_list(texts, 0)
        return texts[0]

    def mean(self, number: Tensor) -> Tensor:
        """Return the mean of a number over the processes."""
        if self.world > 1:
            dist.all_reduce(number)
        return number / self.world

    def of_first(self, number: float) -> float:
        """Return the number of the first process, so that all decide alike."""
        if self.world == 1:
            return number
        shared = torch.tensor(number, dtype=torch.float64, device=self.device)
        dist.broadcast(shared, 0)
        return shared.item()


def _require_usable(device: str, local: int) -> None:
    """Refuse a GPU that is not there, in one line."""
    if device == "cuda" and not torch.cuda.is_available():
        why = "is built without CUDA" if torch.version.cuda is None else "finds no GPU"
        raise ValueError(
            f"no GPU is usable here: PyTorch {torch.__version__} {why}. Leave out --device, or name cpu"
        )
    if device == "cuda" and local >= torch.cuda.device_count():
        raise ValueError(
            f"process {local} of this machine needs a GPU of its own, and there are {torch.cuda.device_count()}; "
            f"start fewer processes, or name --device cpu"
        )
    if device == "mps" and not torch.backends.mps.is_available():
        raise ValueError(
            f"no GPU of Apple is usable here: PyTorch {torch.__version__} finds no MPS. Leave out --device, or name cpu"
        )
    if device == "mps" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("--device mps trains in one process; leave out torchrun, or name cpu")


def _of_this_start(store: dist.Store, rank: int, world: int) -> dist.Store:
    """Return a part of the store in which nothing of an earlier start of these processes stands.

    `torchrun` keeps one store for all its restarts: a process would find there, and call, the address of one that was
    killed. The first process names a new part; each other answers with a number of its own, and is sure that the name is
    no older than itself when the first process repeats that number.
    """
    mine = uuid.uuid4().hex
    if rank == 0:
        store.set("first", mine)
        for other in range(1, world):
            while not (answer := store.get(f"answer {other}").decode()).startswith(mine):
                time.sleep(0.02)
            store.set(f"repeated {other}", answer)
        return dist.PrefixStore(mine, store)
    while True:
        first = store.get("first").decode()
        answer = f"{first} {mine}"
        store.set(f"answer {rank}", answer)
        repeated = f"repeated {rank}"
        if store.check([repeated]) and store.get(repeated).decode() == answer:
            return dist.PrefixStore(first, store)
        time.sleep(0.02)
