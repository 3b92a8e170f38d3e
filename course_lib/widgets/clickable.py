"""A live figure whose panels may have several regions to point at and to click."""

from course_lib.widgets.live_figure import LiveFigure


class ClickableFigure(LiveFigure):
    """A `LiveFigure` that asks its panels for all their `regions`."""

    def hover(self) -> list[dict]:
        """Collect the exact values of all regions of all panels."""
        return [region for panel in self.panels for region in panel.regions()]
