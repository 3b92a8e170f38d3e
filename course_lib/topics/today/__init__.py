"""What the models of today do differently, one idea a file.

What a token leaves behind (`latent`), which tokens are looked at (`indexer`), summaries in their place (`compressed`), a
memory of fixed size (`delta`), who computes (`experts`), and what carries the result (`streams`).
"""

from course_lib.topics.today.compressed import (
    CompressedAttention,
    Summaries,
    summaries,
    summary_mask,
)
from course_lib.topics.today.delta import GatedDeltaLayer, delta_rule, delta_rule_in_chunks
from course_lib.topics.today.experts import ExpertLayer, Router, Routing
from course_lib.topics.today.indexer import Indexer, attend_to, index_scores, keep_best
from course_lib.topics.today.latent import LatentAttention
from course_lib.topics.today.streams import HyperConnection, doubly_stochastic

__all__ = [
    "CompressedAttention",
    "ExpertLayer",
    "GatedDeltaLayer",
    "HyperConnection",
    "Indexer",
    "LatentAttention",
    "Router",
    "Routing",
    "Summaries",
    "attend_to",
    "delta_rule",
    "delta_rule_in_chunks",
    "doubly_stochastic",
    "index_scores",
    "keep_best",
    "summaries",
    "summary_mask",
]
