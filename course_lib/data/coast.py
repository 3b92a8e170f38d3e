"""Land and sea on a real map: two-dimensional keys with class labels."""

import math
from typing import NamedTuple

import matplotlib.cbook
import torch
from jaxtyping import Float, Int
from torch import Tensor

_KM_PER_DEGREE = math.pi / 180 * 6371  # of latitude, on a sphere with the Earth's mean radius


class CoastMap(NamedTuple):
    """Cells of a map, row by row from north to south.

    Attributes:
        positions: kilometres east and north of the centre.
        labels: 0 for sea, 1 for land.
        shape: rows and columns, so that `labels.reshape(shape)` is the picture, north at the top.
        extent: west, east, south, north of the picture in kilometres, as `imshow` takes it. The rows are those of
            a Mercator map, so that equally high rows are up to 1.1 km off.
    """

    positions: Float[Tensor, "cell 2"]
    labels: Int[Tensor, " cell"]
    shape: tuple[int, int]
    extent: tuple[float, float, float, float]


def coast_map() -> CoastMap:
    """Return 91 × 120 cells of the south of Vancouver Island and the coast beside it (shipped with matplotlib).

    A cell is land where its height is above 0. Degrees are converted to kilometres at the latitude of the
    centre, where a degree of longitude is shorter than one of latitude by the cosine of the latitude.
    """
    with matplotlib.cbook.get_sample_data("topobathy.npz") as grid:
        height, longitude, latitude = (
            torch.from_numpy(grid[name]) for name in ("topo", "longitude", "latitude")
        )
    centre = latitude.mean()
    east = (longitude - longitude.mean()) * _KM_PER_DEGREE * torch.deg2rad(centre).cos()
    north = (latitude - centre).flip(0) * _KM_PER_DEGREE
    rows, columns = len(north), len(east)
    positions = torch.stack(
        [east.expand(rows, columns), north[:, None].expand(rows, columns)], dim=-1
    )
    half = [(axis[1] - axis[0]).abs().item() / 2 for axis in (east, north)]
    extent = (
        east[0].item() - half[0],
        east[-1].item() + half[0],
        north[-1].item() - half[1],
        north[0].item() + half[1],
    )
    labels = (height.flip(0) > 0).long().flatten()
    return CoastMap(positions.flatten(0, 1).contiguous(), labels, (rows, columns), extent)
