"""The exported pages of the course in chromium, cut off from the network."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from course_lib.tools import normal_form
from course_lib.tools.site.__main__ import write_site
from tests.helpers.lab import CHROMIUM, CHROMIUM_ARGUMENTS

NAMES = ["index", *(path.stem for path in normal_form.paths())]
#: What a page holds, once its fonts are there.
FACTS = """() => ({
    images: document.querySelectorAll('main img').length,
    without_words: [...document.images]
        .filter((image) => !image.alt.trim() || !image.complete || image.naturalWidth === 0)
        .map((image) => image.outerHTML.slice(0, 80)),
    formulas: [...document.querySelectorAll('math')].map((math) => {
        const { width, height } = math.getBoundingClientRect();
        const folded = Boolean(math.closest('details:not([open])'));
        return { text: math.textContent, width, height, folded };
    }),
    roots: [...document.querySelectorAll('msqrt')].map((root) => {
        const [all, inside] = [root, root.firstElementChild].map((one) => one.getBoundingClientRect());
        return { sign: inside.left - all.left, behind: all.right - inside.right };
    }),
    font: document.fonts.check('16px "Course Maths"', 'x'),
    links: [...document.querySelectorAll('a[href]')].map((link) => link.href),
    anchors: [...document.querySelectorAll('[id]')].map((one) => one.id),
})"""
#: Keep one piece of highlighted code of each kind, since axe looks at each for long.
THIN = """() => {
    const seen = new Set();
    for (const piece of document.querySelectorAll('.code span')) {
        if (seen.has(piece.className)) piece.replaceWith(...piece.childNodes);
        seen.add(piece.className);
    }
}"""


class Site:
    """The pages in a browser window, and every request for something else than a file of the site."""

    def __init__(self, page, folder) -> None:
        self.page, self.folder = page, folder
        self.refused: list[str] = []
        page.context.set_offline(True)
        page.route("**/*", self._admit)

    def _admit(self, route) -> None:
        if route.request.url.startswith((self.folder.as_uri(), "data:")):
            return route.continue_()
        self.refused.append(route.request.url)
        route.abort()

    def address(self, name: str) -> str:
        return (self.folder / f"{name}.html").as_uri()

    def open(self, name: str, width: int) -> None:
        """Open a page and wait for its font."""
        self.page.set_viewport_size({"width": width, "height": 1000})
        self.page.goto(self.address(name))
        self.page.evaluate("() => document.fonts.ready")

    def violations(self, scheme: str, options: dict | None = None) -> list:
        """What axe finds on the open page in light or dark colours."""
        self.page.emulate_media(color_scheme=scheme)
        found = Axe().run(self.page, options=options).response["violations"]
        return [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    from playwright.sync_api import sync_playwright

    folder = tmp_path_factory.mktemp("site")
    write_site(folder, normal_form.paths())
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        yield Site(browser.new_page(), folder)
        browser.close()


@pytest.fixture(scope="module")
def facts(site):
    """Page → its `FACTS`, and what it asked the network for."""
    read = {}
    for name in NAMES:
        site.open(name, width=1500)
        read[name] = site.page.evaluate(FACTS) | {"refused": list(site.refused)}
    return read


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_has_words_and_nothing_asks_the_network(facts, name):
    page = facts[name]
    assert page["images"] > 0
    assert page["without_words"] == page["refused"] == []


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_and_no_page_scrolls_sideways(site, name):
    site.open(name, width=400)
    for width in (400, 900, 1500):
        site.page.set_viewport_size({"width": width, "height": 1000})
        assert site.page.evaluate("document.documentElement.scrollWidth") <= width
    site.page.evaluate(THIN)
    assert site.violations("light") == []
    if name == NAMES[-1]:
        contrast = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
        assert site.violations("dark", contrast) == []


def test_every_formula_is_drawn(facts):
    formulas = [each for page in facts.values() for each in page["formulas"]]
    assert len(formulas) > 200
    assert all(each["width"] > 2 and each["height"] > 4 for each in formulas)
    longest = max(formulas, key=lambda each: len(each["text"]))
    assert len(longest["text"]) > 60 and longest["width"] > 300
    for name in NAMES[1:]:
        unfolded = [each for each in facts[name]["formulas"] if not each["folded"]]
        assert facts[name]["font"] or not unfolded, name
        for root in facts[name]["roots"]:
            assert root["sign"] > 6 and root["behind"] < 1, name


def test_every_link_between_the_pages_leads_somewhere(site, facts):
    anchors = {site.address(name): set(page["anchors"]) for name, page in facts.items()}
    for name, page in facts.items():
        assert len(page["links"]) > 5  # back to the lesson, the contents, and on
        for link in page["links"]:
            address, _, anchor = link.partition("#")
            assert not address.endswith(".ipynb"), (name, link)
            if address.startswith("file:"):
                assert address in anchors, (name, link)
                assert not anchor or anchor in anchors[address], (name, link)
