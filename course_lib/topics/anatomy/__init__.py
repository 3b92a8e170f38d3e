"""What is in a model: its layers, what a token leaves in each, its parameters and FLOPs, from its configuration alone."""

from course_lib.topics.anatomy.anatomy import Anatomy, anatomy, model_names
from course_lib.topics.anatomy.side_by_side import side_by_side

__all__ = ["Anatomy", "anatomy", "model_names", "side_by_side"]
