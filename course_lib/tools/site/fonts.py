"""The font of the formulas: with brackets and roots that grow, which few computers have installed."""

from importlib.metadata import distribution
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

#: A browser draws a single letter in italics, which are characters of their own.
_ITALIC = {0x210E, *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)}


def write_maths_font(path: Path, text: str) -> None:
    """Write STIX Two Math with only what a text needs.

    Args:
        path: of a .woff file.
        text: every character of every formula; letters become italic in a browser.
    """
    font = TTFont(distribution("ziamath").locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf"))
    options = subset.Options(flavor="woff", hinting=False, layout_features=["ssty", "ccmp"])
    options.drop_tables += ["FFTM"]
    reduced = subset.Subsetter(options)
    reduced.populate(unicodes={ord("√"), *map(ord, text), *range(0x20, 0x7F), *_ITALIC})
    reduced.subset(font)
    _narrow_tall_roots(font)
    subset.save_font(font, str(path), options)


def _narrow_tall_roots(font: TTFont) -> None:
    """Make tall root signs as wide as the lowest: Chromium leaves space for the widest behind every root."""
    root = font.getBestCmap()[ord("√")]
    variants = font["MATH"].table.MathVariants
    shapes = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(root)]
    width = font["hmtx"][root][0]
    taller = {each.VariantGlyph for each in shapes.MathGlyphVariantRecord}
    taller |= {each.glyph for each in shapes.GlyphAssembly.PartRecords}
    for name in taller - {root}:
        advance, left = font["hmtx"][name]
        glyph = font["glyf"][name]
        glyph.coordinates.scale((width / advance, 1))
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, round(left * width / advance))
