"""Figures: arrays in, matplotlib artists out. Nothing here depends on widgets, models or notebooks.

A *panel* owns the artists on one Axes that can change. It draws the fixed parts once, when it is made;
`update` changes the artists in `artists`; `hover` returns the exact values under the pointer.
"""

from course_lib.plots.bars import BarsPanel
from course_lib.plots.diagrams import alignment_diagram, one_query_diagram
from course_lib.plots.drawn import drawn_panels
from course_lib.plots.fit import FitPanel
from course_lib.plots.headline import HeadlinePanel
from course_lib.plots.heads import HeadsPanel
from course_lib.plots.histogram import HistogramPanel
from course_lib.plots.layers import LayersPanel
from course_lib.plots.lines import LinesPanel
from course_lib.plots.links import LinksPanel
from course_lib.plots.map import MapPanel
from course_lib.plots.ngrams import NgramsPanel
from course_lib.plots.sentence_pair import SentencePairPanel
from course_lib.plots.stems import StemsPanel
from course_lib.plots.still import bar_plot, line_plot
from course_lib.plots.style import COLOURS, STYLE, figure, legend_above
from course_lib.plots.tiles import TilesPanel
from course_lib.plots.tree import TreePanel
from course_lib.plots.vectors import VectorsPanel
