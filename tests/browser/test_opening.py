"""Every notebook opens with a picture that moves, a cell or two after its first."""

import pytest

from course_lib.tools import normal_form
from tests.helpers.opening import open_and_move

NOTEBOOKS = [path.name for path in normal_form.paths()]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_the_first_explorer_moves_within_three_cells(lab, screen, notebook):
    opening = open_and_move(screen, lab, notebook)
    assert opening.cells <= 3
    assert opening.moved < 60, "it hangs: `make bench` measures about 10 s on two quiet cores"
    assert screen.complaints() == []
