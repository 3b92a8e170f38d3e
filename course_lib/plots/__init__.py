"""Pure drawing: arrays in, artists on Axes out. Nothing here knows of widgets, models or notebooks.

A *panel* owns what moves on one Axes. It draws the still parts once, when it is made; `update`
moves the artists listed in `artists`; `hover` says which exact values stand where.
"""

from course_lib.plots.alignment import AlignmentPanel
from course_lib.plots.bars import BarsPanel
from course_lib.plots.clocks import ClocksPanel
from course_lib.plots.diagrams import (
    attention_diagram,
    blocks_diagram,
    cache_diagram,
    heads_diagram,
    residual_diagram,
    self_and_cross_diagram,
    transformer_diagram,
)
from course_lib.plots.fit import FitPanel
from course_lib.plots.grid import GridPanel
from course_lib.plots.heads import HeadsPanel
from course_lib.plots.heat_map import HeatMapPanel
from course_lib.plots.histogram import HistogramPanel
from course_lib.plots.intervals import IntervalsPanel, interval_grid
from course_lib.plots.lines import LinesPanel
from course_lib.plots.links import LinksPanel
from course_lib.plots.ngrams import NgramsPanel
from course_lib.plots.numbers import NumbersPanel
from course_lib.plots.signed_map import SignedMapPanel
from course_lib.plots.stems import StemsPanel
from course_lib.plots.style import COLOURS, STYLE, figure
from course_lib.plots.token_map import TokenMapPanel
from course_lib.plots.tree import TreePanel

__all__ = [
    "COLOURS",
    "STYLE",
    "AlignmentPanel",
    "BarsPanel",
    "ClocksPanel",
    "FitPanel",
    "GridPanel",
    "HeadsPanel",
    "HeatMapPanel",
    "HistogramPanel",
    "IntervalsPanel",
    "LinesPanel",
    "LinksPanel",
    "NgramsPanel",
    "NumbersPanel",
    "SignedMapPanel",
    "StemsPanel",
    "TokenMapPanel",
    "TreePanel",
    "attention_diagram",
    "blocks_diagram",
    "cache_diagram",
    "figure",
    "heads_diagram",
    "interval_grid",
    "residual_diagram",
    "self_and_cross_diagram",
    "transformer_diagram",
]
