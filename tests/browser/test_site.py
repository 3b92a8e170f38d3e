"""The web site in chromium, from a folder and cut off from the network: a lesson, a study, the library."""

import base64
import io
import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect
from scipy.ndimage import minimum_filter

from course_lib.tools import normal_form
from course_lib.tools.site.__main__ import write_site
from course_lib.tools.site.record import FRAMES
from course_lib.widgets.live_figure import SHARPNESS
from tests.helpers.lab import window

pytestmark = pytest.mark.site
LESSON, STUDY = "08_transformer", "01a_which_average"
PAGES = [
    "index.html",
    f"notebooks/{LESSON}.html",
    f"notebooks/studies/{STUDY}.html",
    "api/transformer.masks.html",
    "about.html",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    write_site(made / "site", normal_form.paths([LESSON, STUDY]), made / "build")
    return made / "site"


@pytest.fixture(scope="module")
def screen(folder):
    """A window, and every request for something else than a file of the site."""
    with window(1400) as opened:
        opened.page.unroute("**/*")
        opened.page.context.set_offline(True)
        opened.page.on(
            "request",
            lambda request: (
                request.url.startswith((folder.as_uri(), "data:", "blob:"))
                or opened.refused.append(request.url)
            ),
        )
        yield opened


def go(screen, folder, page, width=1400):
    screen.page.set_viewport_size({"width": width, "height": 900})
    address, _, query = page.partition("?")
    screen.page.goto(f"{(folder / address).as_uri()}?{query}".rstrip("?"))
    screen.page.wait_for_function("() => !window.MathJax || MathJax.startup?.promise")
    screen.page.evaluate("() => window.MathJax?.startup.promise")


@pytest.fixture(params=[1400, 390])
def player(screen, folder, request):
    """The explorer of the lesson, on a wide screen and on a phone."""
    go(screen, folder, f"notebooks/{LESSON}.html", request.param)
    found = screen.page.locator(".course-player")
    found.scroll_into_view_if_needed()
    found.locator("canvas[data-shown]").wait_for()
    return found


def test_a_slider_moves_the_picture_and_the_words_by_keyboard_and_by_mouse(screen, player):
    picture, words = player.locator("canvas").first, player.locator("figcaption [role=status]")
    slider = player.locator("fieldset").get_by_label("query")

    def seen():
        shown = picture.get_attribute("data-shown")
        return shown, words.inner_text(), slider.get_attribute("aria-valuetext")

    for move in (
        lambda: slider.press("ArrowRight"),
        lambda: slider.click(position={"x": 3, "y": 5}),
    ):
        before = seen()
        move()
        screen.page.wait_for_function(
            "([picture, before]) => picture.dataset.shown !== before",
            arg=[picture.element_handle(), before[0]],
        )
        after = seen()
        assert all(new != old for new, old in zip(after, before, strict=True))
        assert f"query {after[2]} " in after[1]
        assert picture.get_attribute("aria-label").split()[0] == after[1].split()[0]
    assert player.locator("output").last.inner_text() == "0"
    player.get_by_text("Reset").click()
    expect(slider).to_have_attribute("aria-valuetext", "3")


def test_a_menu_a_click_and_the_keys_of_the_picture_work_as_in_the_notebook(screen, player):
    words = player.locator("figcaption [role=status]")
    player.locator("fieldset").get_by_label("layer").select_option("encoder 0: self")
    expect(words).to_contain_text("encoder 0: self")
    player.get_by_text("Reset").click()
    stage = player.locator(".course-picture-stage")
    stage.focus()
    screen.page.keyboard.press("ArrowRight")
    expect(player.locator(".course-picture-tip")).to_contain_text(
        re.compile(r"query .*key .*: 0\.\d|1")
    )
    before = words.inner_text()
    screen.page.keyboard.press("ArrowDown")
    screen.page.keyboard.press("ArrowDown")
    assert words.inner_text() != before


def test_where_nothing_was_recorded_the_nearest_picture_is_shown_and_the_notebook_named(player):
    said = player.locator("[role=alert]")
    expect(said).to_be_hidden()
    player.locator("fieldset").get_by_label("layer").select_option("encoder 1: self")
    for name in ("head", "query"):
        player.locator("fieldset").get_by_label(name).press("End")
        player.locator("fieldset").get_by_label(name).press("ArrowLeft")
    player.locator("fieldset").get_by_label("view").select_option(index=1)
    expect(said).to_contain_text("Open the notebook for this")
    expect(player.locator("fieldset").get_by_label("view")).to_have_js_property("selectedIndex", 1)
    link = said.locator("a").get_attribute("href")
    assert link == f"../_sources/notebooks/{LESSON}.ipynb"


def pixels_of(locator):
    return np.asarray(Image.open(io.BytesIO(locator.screenshot())).convert("RGB")).astype(int)


def test_a_moved_picture_has_no_trace_of_the_first_one(screen, folder, player):
    """White where the whole picture, put together from its files and shown as one image, is white."""
    for _ in range(2):
        player.locator("fieldset").get_by_label("query").press("ArrowRight")
    picture = player.locator("canvas").first
    screen.page.wait_for_timeout(500)
    names = picture.get_attribute("data-shown"), player.get_attribute("data-name")
    still = (folder / f"notebooks/{LESSON}.html").read_text(encoding="utf-8")
    (base,) = re.findall(r'class="course-picture-strips"><img src="\.\./(.*?)"', still)
    whole = Image.open(folder / base).convert("RGBA")
    whole.alpha_composite(Image.open(folder / FRAMES / names[0].rpartition("/")[2]).convert("RGBA"))
    drawn = pixels_of(picture)
    file = io.BytesIO()
    whole.save(file, "PNG")
    address = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    screen.page.evaluate(
        """([picture, src]) => {
            const image = Object.assign(new Image(), { src });
            picture.parentNode.append(image);
            Object.assign(image.style, { position: "absolute", inset: 0, width: "100%", height: "100%", maxWidth: "none" });
            return image.decode();
        }""",
        [picture.element_handle(), address],
    )
    wanted = pixels_of(picture.locator("xpath=../img"))
    assert drawn.shape == wanted.shape
    white = minimum_filter(wanted.min(axis=2), size=5) == 255
    assert white.mean() > 0.1 and drawn[white].min() >= 250
    assert np.abs(drawn - wanted).mean() < 4


def test_on_a_phone_panels_stand_below_one_another_and_letters_have_9_pixels(screen, folder):
    for width, stacked in ((1400, False), (390, True)):
        go(screen, folder, f"notebooks/{LESSON}.html", width)
        player = screen.page.locator(".course-player")
        player.scroll_into_view_if_needed()
        player.locator("canvas[data-shown]").wait_for()
        tops = player.locator(".course-picture-strip").evaluate_all(
            "(all) => all.map((strip) => strip.getBoundingClientRect().top)"
        )
        assert len(tops) > 1 and (tops[-1] > tops[0] + 100) == stacked
        full = float(re.search(r"--course-width: ([\d.]+)px", player.get_attribute("style"))[1])
        shown = player.locator(".course-picture-sheet").first.bounding_box()["width"]
        whole = float(player.locator("canvas").first.get_attribute("width")) / SHARPNESS
        assert shown == pytest.approx(full, abs=1) and shown / whole >= 0.655  # 10 points: 13.9 px
        scales = screen.page.evaluate(
            """() => [...document.querySelectorAll('.course-still img, .bd-article img[src$=".svg"]')]
                .map((image) => image.clientWidth / image.getAttribute('width'))"""
        )
        assert len(scales) >= 2 and min(scales) >= 0.655
        faded = screen.page.evaluate(
            """() => [...document.querySelectorAll('.course-scroll, .course-picture-strips')].map((one) =>
                [one.scrollWidth > one.clientWidth + 2, one.matches('.course-more')])"""
        )
        assert all(cut == sign for cut, sign in faded) and any(cut for cut, _ in faded) == stacked


def test_in_the_dark_pictures_are_dark_and_maps_keep_their_colours(screen, folder):
    go(screen, folder, f"notebooks/{LESSON}.html")
    player = screen.page.locator(".course-player")
    player.scroll_into_view_if_needed()
    player.locator("canvas[data-shown]").wait_for()
    shown = {}
    for scheme in ("light", "dark"):
        screen.page.evaluate(
            "(scheme) => { document.documentElement.dataset.theme = scheme; }", scheme
        )
        shown[scheme] = pixels_of(player.locator(".course-picture-sheet").first)
    light, dark = shown["light"], shown["dark"]
    white = light.min(axis=2) == 255
    assert white.mean() > 0.1 and dark[white].max() < 80
    same = np.abs(light - dark).max(axis=2) < 3
    assert same.mean() > 0.05, "the maps"
    plain = screen.page.locator(".course-still img.course-plain").first
    assert pixels_of(plain)[0, -1].max() < 80


def test_the_first_page_leads_to_a_lesson_and_a_page_says_nothing_that_cannot_be_done(
    screen, folder
):
    go(screen, folder, "index.html")
    icon = screen.page.locator('link[rel~="icon"]').evaluate("(link) => link.href")
    assert (folder / icon.removeprefix(folder.as_uri()).lstrip("/")).is_file()
    start = screen.page.get_by_role("link", name="Start with lesson 0")
    assert start.bounding_box()["y"] < 900, "without scrolling"
    start.click()
    expect(screen.page).to_have_title(re.compile("The Transformer"))
    said = screen.page.locator(".bd-article").inner_text()
    assert "In the notebook, type" in said and not re.search(r"Shift \+ Enter|\d\. Type", said)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_asks_for_nothing_outside_and_its_links_lead_somewhere(screen, folder, page):
    for width in (1400, 390):
        go(screen, folder, page, width)
        assert screen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert screen.page.locator("mjx-merror, .problematic").count() == 0
    links = screen.page.evaluate(
        """() => [...document.querySelectorAll('main a[href]:not(.xref), nav a[href]')]
            .map((link) => link.href).filter((link) => link.startsWith('file:'))"""
    )
    assert len(links) > 5  # xref: a notebook that is not in this small site
    for link in links:
        target, _, anchor = link.partition("#")
        path = folder / target.removeprefix(folder.as_uri()).lstrip("/")
        assert path.is_file(), link
        if anchor and not target.endswith(page):
            assert f'id="{anchor}"' in path.read_text(encoding="utf-8"), link
    assert screen.refused == screen.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_is_ours(screen, folder, scheme):
    for page, width in zip(PAGES[:3], (1400, 390, 390), strict=True):
        go(screen, folder, page, width)
        screen.page.evaluate(
            "(scheme) => { document.documentElement.dataset.theme = scheme; }", scheme
        )
        found = Axe().run(screen.page, context=".bd-article").response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]][:2]) for one in found] == []


def test_the_search_finds_a_page(screen, folder):
    go(screen, folder, "search.html?q=beam")
    expect(screen.page.locator("#search-results a").first).to_be_visible()
    assert LESSON in "".join(
        screen.page.locator("#search-results a").evaluate_all("(all) => all.map((a) => a.href)")
    )


def test_hints_are_folded_and_the_notebook_can_be_had(screen, folder):
    go(screen, folder, f"notebooks/{LESSON}.html")
    hint = screen.page.get_by_text("Hint 1 of").first
    text = hint.locator("xpath=../p")
    expect(text).to_be_hidden()
    hint.click()
    expect(text).to_be_visible()
    assert screen.page.locator(".cell_input button.copybtn").count() > 15
    assert screen.page.locator(".cell_output button.copybtn").count() == 0
    downloaded = folder / f"_sources/notebooks/{LESSON}.ipynb"
    assert downloaded.read_bytes() == normal_form.paths([LESSON])[0].read_bytes()


def test_a_page_with_all_that_it_plays_weighs_at_most_3_MB(folder):
    page = (folder / f"notebooks/{LESSON}.html").read_text(encoding="utf-8")
    scripts = [folder / FRAMES / f"{name}.js" for name in re.findall(r'data-name="([^"]+)"', page)]
    text = page + "".join(script.read_text(encoding="utf-8") for script in scripts)
    pictures = set(re.findall(r"\w{16}\.(?:webp|png)", text))
    assert len(pictures) > 50
    weight = len(text.encode()) + sum((folder / FRAMES / name).stat().st_size for name in pictures)
    assert weight <= 3e6
