"""The kernel of the course: IPython's, with PyTorch imported while the browser still draws the notebook."""

import torch  # noqa: F401  a second or more, which the first cell would take otherwise
from ipykernel.kernelapp import launch_new_instance

if __name__ == "__main__":
    launch_new_instance()
