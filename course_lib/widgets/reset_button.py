"""A button that starts a notebook of the learner's copy again."""

import anywidget
import traitlets

from course_lib import messages
from course_lib.lab import working_copy
from course_lib.widgets.picture import scripts


class ResetButton(anywidget.AnyWidget):
    """Exchange the notebook that shows it for the course's version; the old one is kept under another name.

    The browser saves the notebook first and shows the new one afterwards. Outside JupyterLab nothing is shown.
    """

    _esm = scripts("values", "pointer", "saving", "reset")

    words = traitlets.Dict(messages.RESET_BUTTON).tag(sync=True)
    shown_in = traitlets.Unicode().tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self.shown_in = self.model_id
        self.on_msg(self._answer)

    def _answer(self, _widget, content: dict, _buffers) -> None:
        try:
            kept = working_copy.reset(content["path"])
            self.send({"done": messages.RESET_KEPT.format(kept=kept.name)})
        except (OSError, ValueError) as error:
            self.send({"problem": str(error)})
