"""The PNG files of pictures, read by Pillow."""

import io

import numpy as np
from PIL import Image

from course_lib.widgets.png import encode_png


def test_pillow_reads_the_same_pixels():
    generator = np.random.default_rng(0)
    for height, width in ((1, 1), (1, 7), (5, 1), (37, 53)):
        pixels = generator.integers(0, 256, (height, width, 4), dtype=np.uint8)
        image = Image.open(io.BytesIO(encode_png(pixels)))
        image.load()  # checks the checksums
        assert image.format == "PNG" and image.mode == "RGBA"
        assert np.array_equal(np.asarray(image), pixels)


def test_rows_that_are_not_contiguous_are_read():
    pixels = np.random.default_rng(1).integers(0, 256, (6, 8, 4), dtype=np.uint8)
    image = Image.open(io.BytesIO(encode_png(pixels[::2, 1::3])))
    assert np.array_equal(np.asarray(image), pixels[::2, 1::3])
