"""The key/value cache: projected keys and values, kept while a sequence is generated token by token."""

from course_lib.cache.layer import CrossAttentionCache, KeyValueCache
from course_lib.cache.model import BlockCache, ModelCache

__all__ = ["BlockCache", "CrossAttentionCache", "KeyValueCache", "ModelCache"]
