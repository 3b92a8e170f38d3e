"""Markdown as HTML: formulas as MathML, code highlighted, links to notebooks as links to pages."""

import html
import re

import mistune
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_lib.tools.site.maths import mathml

_PLAIN = re.compile(r'<span class="(?:w|n|nn|p|o)">([^<]*)</span>')
_WORD = re.compile(r"[^\w]+")


def anchor(heading: str) -> str:
    """Return the id of a heading: its words, joined by hyphens."""
    words = html.unescape(re.sub(r"<[^>]+>", "", heading))
    return _WORD.sub("-", words.lower()).strip("-")


def page_address(url: str) -> str:
    """Return where the page of a notebook is, in the site's one folder; other addresses stay."""
    return re.sub(r"^(?:\.\./|studies/)*(\w+)\.ipynb(?=#|$)", r"\1.html", url)


def code(source: str) -> str:
    """Highlight Python; names, operators and spaces, which have no colour, stay without a tag."""
    return _PLAIN.sub(r"\1", highlight(source, PythonLexer(), HtmlFormatter(cssclass="code")))


def markdown(source: str) -> str:
    """Convert a Markdown cell.

    Raises:
        ValueError: for a formula that cannot be converted.
    """
    renderer = _Renderer(escape=False)
    return mistune.create_markdown(renderer=renderer, plugins=["table", "strikethrough", _maths])(
        source
    )


def _maths(parser: mistune.Markdown) -> None:
    """Know formulas between $$ and $$, also within a paragraph, and between $ and $."""

    def formula(kind: str, group: str):
        def add(_, found: re.Match, state) -> int:
            state.append_token({"type": kind, "raw": found[group]})
            return found.end()

        return add

    on_lines = r"^\$\$(?P<lines_of_tex>(?:[^$]|\\\$)+)\$\$[ \t]*(?:\n|$)"
    parser.block.register("block_math", on_lines, formula("block_math", "lines_of_tex"), "list")
    within = r"\$\$(?P<block_tex>(?:[^$]|\\\$)+)\$\$"
    parser.inline.register("block_math", within, formula("block_math", "block_tex"), "link")
    inline = r"(?<!\\)\$(?P<tex>(?:[^$\\]|\\.)+)\$"
    parser.inline.register("inline_math", inline, formula("inline_math", "tex"), "link")


class _Renderer(mistune.HTMLRenderer):
    def block_code(self, source: str, info: str | None = None) -> str:
        if info and info.strip() == "python":
            return code(source)
        return f'<pre class="output">{html.escape(source)}</pre>'

    def block_html(self, source: str) -> str:
        if source.startswith("<img "):
            return f'<div class="picture" tabindex="0">{source.strip()}</div>\n'
        return super().block_html(source)

    def block_math(self, tex: str) -> str:
        return f'<span class="formula" tabindex="0">{mathml(tex, block=True)}</span>'

    def inline_math(self, tex: str) -> str:
        return mathml(tex)

    def heading(self, text: str, level: int, **attributes) -> str:
        return f'<h{level} id="{anchor(text)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if not re.match(r"\w+:", url):
            url = page_address(url)
        return super().link(text, url, title)

    def table(self, text: str) -> str:
        return f'<div class="table" tabindex="0"><table>{text}</table></div>\n'
