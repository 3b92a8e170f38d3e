"""The page for instructors plans with the notebooks, times and commands that there are."""

import re

import pytest

from course_lib.tools import normal_form, run_times

PAGE = normal_form.NOTEBOOKS / "INSTRUCTORS.md"
TEXT = PAGE.read_text(encoding="utf-8")
PATHS = normal_form.paths()
LESSONS = [path.stem for path in PATHS if not normal_form.is_study(path)]
STUDIES = [path.stem for path in PATHS if normal_form.is_study(path)]
PLANS = {
    int(weeks): re.findall(r"^\| \d+ \|.*", plan, re.MULTILINE)
    for weeks, plan in re.findall(r"\*\*(\d+) weeks: (.*?)(?=\n\*\*|\nStudies)", TEXT, re.DOTALL)
}


def planned(rows):
    return re.findall(r"(\w+)\.ipynb", "".join(rows))


def test_every_link_leads_to_a_file_and_every_command_is_one_of_make():
    links = re.findall(r"\]\((?!http)([^)#]+)", TEXT)
    assert not [link for link in links if not (PAGE.parent / link).exists()]
    makefile = (PAGE.parents[1] / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:^|`)make (?:\w+=\w+ )?([a-z]+)", TEXT, re.MULTILINE))
    assert targets <= set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    assert "(notebooks/INSTRUCTORS.md)" in (PAGE.parents[1] / "README.md").read_text("utf-8")


def test_the_plans_have_4_8_and_14_weeks_and_keep_the_order_of_the_lessons():
    assert {weeks: len(rows) for weeks, rows in PLANS.items()} == {4: 4, 8: 8, 14: 14}
    for rows in PLANS.values():
        lessons = [stem for stem in planned(rows) if stem in LESSONS]
        assert lessons == LESSONS[: len(lessons)]
        for row in rows:  # a study comes with its lesson
            known = {stem[:2] for stem in planned([row]) if stem in LESSONS}
            assert {stem[:2] for stem in planned([row]) if stem in STUDIES} <= known
    assert set(LESSONS) <= set(planned(PLANS[8]))
    assert sorted(planned(PLANS[14])) == sorted(LESSONS + STUDIES)


@pytest.mark.parametrize("row", [row for rows in PLANS.values() for row in rows])
def test_the_times_of_a_week_are_the_sums_of_its_notebooks(row):
    stems = planned([row])
    studies = sum(stem in STUDIES for stem in stems)
    lessons = len(stems) - studies
    least, most, seconds = map(int, re.search(r"(\d+)–(\d+) min \| (\d+) s \|$", row).groups())
    assert (least, most) == (45 * lessons + 15 * studies, 60 * lessons + 30 * studies)
    measured = sum(run_times.said_in(path)[0] for path in PATHS if path.stem in stems)
    assert abs(seconds - measured) <= 10 + 0.2 * measured, f"they run in {measured} s"
