"""Explorers: controls and a live figure. Every explorer is one function, in a module of its own.

- Its arguments are the data and the initial values of the controls. It draws panels of `course_lib.plots`, and returns a
  `View`: the panels, what each control can be, and `update`, which moves data into the panels and returns facts.
- The decorator `explorer` makes the `Explorer` of it: `make_control` chooses text boxes, sliders and menus, `Call` writes
  the line of code that recreates it, `LiveFigure` redraws only what changed in the panels, and `Picture` shows the figure
  in the browser, with exact values under the pointer.
- `browser/` holds what runs in the browser.

To add an explorer, write such a module, export its function here, and test that the data drawn are what an
independent computation gives; CONTRIBUTING.md goes through it with an example.
"""

from course_lib.topics.attention_maps import AttentionMap
from course_lib.widgets.anatomy import anatomy_explorer
from course_lib.widgets.attention import attention_explorer
from course_lib.widgets.beam_tree import beam_explorer
from course_lib.widgets.bleu import bleu_explorer
from course_lib.widgets.dates import date_explorer
from course_lib.widgets.depth import depth_explorer
from course_lib.widgets.explorer import Explorer
from course_lib.widgets.generation import generation_explorer
from course_lib.widgets.heads import heads_explorer
from course_lib.widgets.kernel_regression import kernel_regression_explorer
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.logit_lens import logit_lens_explorer
from course_lib.widgets.loss_picture import LossPicture, watch
from course_lib.widgets.masks import mask_explorer
from course_lib.widgets.next_token import next_token_explorer
from course_lib.widgets.patterns import pattern_explorer
from course_lib.widgets.picture import Picture
from course_lib.widgets.positions import bias_explorer, rotary_explorer, sinusoid_explorer
from course_lib.widgets.reshape import reshape_explorer
from course_lib.widgets.scaling import scaling_explorer
from course_lib.widgets.scores import score_explorer
from course_lib.widgets.similarity import similarity_explorer
from course_lib.widgets.translation import translation_explorer
