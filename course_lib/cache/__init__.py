"""What a model keeps while a sequence is written token by token: projected keys and values."""

from course_lib.cache.layer import KeyValueCache, MemoryCache
from course_lib.cache.model import BlockCache, ModelCache

__all__ = ["BlockCache", "KeyValueCache", "MemoryCache", "ModelCache"]
