"""The diagram of Bahdanau's and Luong's decoders: arrows lead from box to box and cross none."""

import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from course_lib.plots import decoder_attention_diagram


def test_no_arrow_runs_over_a_box():
    (axes,) = decoder_attention_diagram().axes
    boxes = [one for one in axes.patches if isinstance(one, FancyBboxPatch)]
    arrows = [one for one in axes.patches if isinstance(one, FancyArrowPatch)]
    assert len(boxes) > 14 and len(arrows) > 16
    for arrow in arrows:
        corners = arrow._path_original.vertices
        for start, end in zip(corners, corners[1:], strict=False):
            points = start + np.linspace(0, 1, 201)[:, None] * (end - start)  # (point, 2)
            for box in boxes:
                left, top = box.get_x(), box.get_y()
                across = points[:, 0] - left, left + box.get_width() - points[:, 0]
                down = points[:, 1] - top, top + box.get_height() - points[:, 1]
                assert np.min([*across, *down], axis=0).max() < 0.03, (start, end, left, top)
