"""Checks of `course_lib.scoring`."""

from course_lib.validation import (
    require_alike,
    require_positive,
    require_same_batch,
    require_same_dtype_and_device_as,
    require_size,
    require_vectors,
    require_whole,
)


def dot_forward(self, query, key):
    """Query and key have the same dimension."""
    _require_pair(query, key)
    require_size(
        query.shape[-1],
        f"this score needs the dimension that query has, {query.shape[-1]}",
        key=key,
    )


scaled_dot_forward = gaussian_forward = dot_forward


def general_init(self, query_size, key_size):
    """Sizes are whole numbers above 0."""
    require_whole(query_size=query_size, key_size=key_size)


def general_forward(self, query, key):
    """Query and key have the dimensions, the dtype and the device that the score was made with."""
    _require_learned_pair(self.W, query, key, *self.W.weight.shape)


def concat_init(self, query_size, key_size, hidden_size):
    """Sizes are whole numbers above 0."""
    require_whole(query_size=query_size, key_size=key_size, hidden_size=hidden_size)


def concat_forward(self, query, key):
    """As for `general_forward`."""
    _require_learned_pair(self.W, query, key, *self.sizes)


additive_init = concat_init


def additive_forward(self, query, key):
    """As for `general_forward`."""
    _require_learned_pair(self.W, query, key, self.W.in_features, self.U.in_features)


def gaussian_init(self, bandwidth=1.0):
    """The bandwidth is positive."""
    require_positive(bandwidth=bandwidth)


def _require_pair(query, key):
    require_vectors(query=query, key=key)
    require_alike(query=query, key=key)
    require_same_batch(query=query, key=key)


def _require_learned_pair(layer, query, key, query_size, key_size):
    _require_pair(query, key)
    require_same_dtype_and_device_as(layer, "score", query=query)
    require_size(query_size, f"the score was made with query_size={query_size}", query=query)
    require_size(key_size, f"the score was made with key_size={key_size}", key=key)
