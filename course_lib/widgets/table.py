"""A table of what was measured here, or written by a model that was trained here."""

import html
from collections.abc import Sequence

import ipywidgets

_LOOKS = "padding: 2px 18px 2px 0; text-align: left; vertical-align: top; line-height: 1.5"
_CELL, _NAME = f"style='{_LOOKS}'", f"style='{_LOOKS}; white-space: nowrap'"


class MeasuredTable(ipywidgets.HTML):
    """Rows that differ from machine to machine.

    Where there is no kernel, and where a notebook is tested, `summary` stands in their place.

    Args:
        header: the names of the columns.
        rows: as many words or numbers each; numbers as they are to be read.
        summary: what the table shows, in words that hold on every machine.

    Raises:
        ValueError: for a row of another length than the header.
    """

    def __init__(
        self, header: Sequence[str], rows: Sequence[Sequence[object]], summary: str
    ) -> None:
        for number, row in enumerate(rows):
            if len(row) != len(header):
                raise ValueError(
                    f"rows[{number}] holds {len(row)} entries, but header has {len(header)}"
                )
        self.summary = summary
        head = "".join(f"<th scope='col' {_NAME}>{html.escape(name)}</th>" for name in header)
        body = "".join(
            "<tr>"
            + "".join(f"<td {_CELL}>{html.escape(str(entry))}</td>" for entry in row)
            + "</tr>"
            for row in rows
        )
        super().__init__(
            f'<table aria-label="{html.escape(summary)}">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def _repr_mimebundle_(self, **kwargs) -> dict:
        return super()._repr_mimebundle_(**kwargs) | {"text/plain": self.summary}
