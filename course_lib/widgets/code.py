"""One line of code that recreates an explorer in its present state."""

import ast
import inspect
from collections.abc import Callable, Mapping
from types import FrameType

from executing import Source

_PLAIN = (str, int, float, bool, type(None))


class Call:
    """A call of a function, as it stands in a cell.

    Args:
        function: what was called.
        given: parameter → its argument.
        frame: in which the call runs, or one that it called.
    """

    def __init__(
        self, function: Callable, given: Mapping[str, object], frame: FrameType | None
    ) -> None:
        self._name, self._parameters = function.__name__, inspect.signature(function).parameters
        sources = _sources(frame, function)
        self._arguments = {
            name: repr(value) if isinstance(value, _PLAIN) else sources.get(name, name)
            for name, value in given.items()
        }

    def code(self, values: Mapping[str, object]) -> str:
        """Return the call with these arguments in place of its own; those that are defaults are left out."""
        written, by_position = [], True
        for name, parameter in self._parameters.items():
            if name in values:
                value = values[name]
                if isinstance(value, float):
                    value = float(f"{value:.8g}")  # a slider's number has a rounding error
                argument = None if values[name] == parameter.default else repr(value)
            else:
                argument = self._arguments.get(name)
            by_position &= argument is not None and parameter.kind != parameter.KEYWORD_ONLY
            if argument is not None:
                short = by_position and name not in values
                written.append(argument if short else f"{name}={argument}")
        return f"{self._name}({', '.join(written)})"


def _sources(frame: FrameType | None, function: Callable) -> dict[str, str]:
    """Return the source code of the arguments of the call; empty if it cannot be read."""
    while frame is not None:  # decorators may stand between
        node = Source.executing(frame).node
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] == function.__name__
        ):
            texts = [ast.unparse(one) for one in node.args]
            named = {one.arg: ast.unparse(one.value) for one in node.keywords if one.arg}
            if any(isinstance(one, ast.Starred) for one in node.args):
                return {}
            return dict(inspect.signature(function).bind_partial(*texts, **named).arguments)
        frame = frame.f_back
    return {}
