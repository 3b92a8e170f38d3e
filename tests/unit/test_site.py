"""The web pages: one small notebook through the exporter, and every formula of the course."""

import base64
import re
from html.parser import HTMLParser

import nbformat
import nbformat.v4 as v4
import pytest
from fontTools.ttLib import TTFont

from course_lib import messages
from course_lib.tools import normal_form
from course_lib.tools.site.__main__ import ROOT, write_site
from course_lib.tools.site.markdown import markdown
from course_lib.tools.site.maths import mathml
from course_lib.tools.site.page import lesson

FIRST = """# 1 · A lesson about $x^2$

**What is it?**

**You need** nothing.

**It runs in** 3 s on two CPU cores. No GPU.

## See it

Then $\\sqrt{d}$, and [the next](02_b.ipynb#see-it), and [far away](https://example.org/a.ipynb).

| name | value |
|---|---|
| *a* | `b` |

$$\\begin{aligned} a &= \\frac12 \\\\[4pt] b &= \\sum_i x_i \\end{aligned}$$
"""
PICTURE = '<img src="../img/attention.svg" width="900" alt="Matrices.">'
SUMMARY = "Bars of <a> & b:\n  first 0.5\n  second 0.7\nbars: value 0.5 to 0.7"


def notebook(*cells):
    return v4.new_notebook(cells=[v4.new_markdown_cell(FIRST), *cells])


def run(source, data):
    size = {"image/png": {"width": 10, "height": 5}} if "image/png" in data else {}
    output = v4.new_output("display_data", data=data, metadata=size)
    return v4.new_code_cell(source, outputs=[output])


class Tags(HTMLParser):
    """Every start tag with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, name):
        return [attributes for tag, attributes in self.found if tag == name]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    png = base64.b64encode(b"a picture").decode()
    printed = v4.new_output("stream", text="1 < 2 & 3")
    table = "<table><tr><th>n</th></tr></table>"
    books = {
        "01_a": notebook(
            run("show()", {"image/png": png, "text/plain": SUMMARY}),
            run("fit()", {"text/plain": messages.TRAINING_HERE}),
            run("table()", {"text/html": table, "text/plain": "A table."}),
            v4.new_code_cell("if 1 < 2: print()", outputs=[printed]),
        ),
        "02_b": notebook(v4.new_markdown_cell(PICTURE)),
    }
    for stem, book in books.items():
        (folder / f"{stem}.ipynb").write_text(normal_form.text(book), encoding="utf-8")
    write_site(folder / "site", [folder / f"{stem}.ipynb" for stem in books])
    return folder / "site"


@pytest.fixture(scope="module")
def first(site):
    return (site / "01_a.html").read_text(encoding="utf-8")


def test_a_picture_keeps_its_summary_as_text_alternative_and_caption(first):
    (image,) = Tags(first).of("img")
    assert image["alt"] == "Bars of <a> & b: first 0.5; second 0.7"
    assert (image["width"], image["height"]) == ("10", "5")
    assert "<figcaption>Bars of &lt;a&gt; &amp; b\n" in first
    below = re.findall(r"<li>(.*?)</li>", first.split("<details><summary>The picture")[1])
    assert below[:3] == ["first 0.5", "second 0.7", "bars: value 0.5 to 0.7"]


def test_nothing_is_loaded_from_outside_the_folder(site):
    for path in site.glob("*.html"):
        for tag, attributes in Tags(path.read_text(encoding="utf-8")).found:
            loaded = [attributes.get(name) for name in ("src", "srcset", "data", "poster")]
            loaded += [attributes.get("href")] if tag == "link" else []
            for address in filter(None, loaded):
                assert address.startswith("data:") or (site / address).is_file(), address
            assert tag not in ("script", "iframe"), path
    style = (site / "style.css").read_text(encoding="utf-8")
    assert re.findall(r"url\((.*?)\)|@import", style) == ['"maths.woff"']


def test_a_picture_of_the_repository_is_copied_and_shown_from_there(site):
    page = (site / "02_b.html").read_text(encoding="utf-8")
    (image,) = Tags(page).of("img")
    assert image == {"src": "img/attention.svg", "width": "900", "alt": "Matrices."}
    copied = (site / image["src"]).read_bytes()
    assert copied == (ROOT / "img/attention.svg").read_bytes()


def test_links_to_notebooks_lead_to_pages(first):
    links = [each["href"] for each in Tags(first).of("a")]
    assert "02_b.html#see-it" in links and "https://example.org/a.ipynb" in links
    assert not any(re.match(r"\d\d_\w+\.ipynb", link) for link in links)
    assert 'id="see-it"' in first and 'href="#see-it"' in first


def test_text_code_and_tables_are_there_and_what_only_a_kernel_shows_is_not(first):
    assert '<pre class="output">1 &lt; 2 &amp; 3</pre>' in first
    assert '<span class="k">if</span>' in first
    assert "<table><tr><th>n</th></tr></table>" in first
    assert messages.TRAINING_HERE not in first
    assert "$" not in re.sub(r"<pre.*?</pre>", "", first, flags=re.DOTALL)


def test_the_index_says_what_the_notebooks_say(site):
    index = (site / "index.html").read_text(encoding="utf-8")
    assert [each["href"] for each in Tags(index).of("a")][1:] == ["01_a.html", "02_b.html"]
    for words in ("What is it?", "nothing.", "3 s on two CPU cores"):
        assert index.count(words) == 2


def test_the_font_has_what_the_formulas_need(site):
    font = TTFont(site / "maths.woff")
    assert "MATH" in font
    for needed in "√∑=(dixa𝑥𝑑":
        assert ord(needed) in font.getBestCmap(), needed
    variants = font["MATH"].table.MathVariants
    roots = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index("radical")]
    names = [each.VariantGlyph for each in roots.MathGlyphVariantRecord]
    names += [each.glyph for each in roots.GlyphAssembly.PartRecords]
    assert len(names) > 4 and len({font["hmtx"][name][0] for name in names}) == 1


def test_a_site_is_replaced_and_nothing_else(site, tmp_path):
    write_site(site, [site.parent / "02_b.ipynb"])
    assert not (site / "01_a.html").exists() and (site / "02_b.html").exists()
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds something else than a site"):
        write_site(tmp_path, [])
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_notebook_without_a_heading_is_refused():
    with pytest.raises(ValueError, match="03_c does not begin with a heading"):
        lesson("03_c", v4.new_notebook(cells=[v4.new_markdown_cell("Words.")]))


@pytest.mark.parametrize("path", normal_form.paths(), ids=lambda path: path.stem)
def test_every_formula_of_the_course_is_converted(path):
    cells = nbformat.read(path, as_version=4).cells
    for source in (cell.source for cell in cells if cell.cell_type == "markdown"):
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", source, flags=re.DOTALL)
        dollars = re.findall(r"(?<!\\)\$\$?", prose)
        assert markdown(source).count("<math") == len(dollars) // 2, source


@pytest.mark.parametrize("tex", [r"\nosuchthing x", r"\frac{a", r"\begin{nosuch}a\end{nosuch}"])
def test_a_formula_that_cannot_be_converted_is_refused(tex):
    with pytest.raises(ValueError, match="cannot be converted"):
        mathml(tex)


def test_formulas_are_laid_out_as_tex_does():
    aligned = mathml(r"\begin{aligned} a &= b \\[4pt] c &= d \end{aligned}", block=True)
    assert aligned.count("<mtr>") == 2 and "4pt" not in aligned and 'display="block"' in aligned
    assert "<mi>softmax</mi>" in mathml(r"\mathrm{softmax}(x)")
    space = '<mspace width="0.167em" />'
    assert f"<mi>a</mi>{space}<mi>cos</mi>{space}<mi>x</mi>" in mathml(r"a \cos x")
    assert space not in mathml(r"\cos(x)")
    assert mathml("a - b = -c").count('form="prefix"') == 1
    assert re.findall('form="(.*?)"', mathml(r"\lvert x\rvert / \lvert y\rvert")) == [
        "prefix", "postfix"
    ] * 2  # fmt: skip
