"""One line of code that recreates an explorer in its present state."""

import ast
import functools
import inspect
import itertools
import linecache
from collections.abc import Callable, Mapping
from types import FrameType

_PLAIN = (str, int, float, bool, type(None))


class Call:
    """A call of a function that makes an explorer, as it stands in a cell.

    Args:
        factory: the function.
        arguments: parameter → source code of its argument.
    """

    def __init__(self, factory: Callable, arguments: Mapping[str, str]) -> None:
        self.name, self.arguments = factory.__name__, dict(arguments)
        self.parameters = inspect.signature(factory).parameters

    def code(self, values: Mapping[str, object]) -> str:
        """Return the call with these arguments in place of its own; those that are defaults are left out."""
        written, by_position = [], True
        for name, parameter in self.parameters.items():
            if name in values:
                argument = None if values[name] == parameter.default else _written(values[name])
            else:
                argument = self.arguments.get(name)
            by_position &= argument is not None and parameter.kind != parameter.KEYWORD_ONLY
            if argument is not None:
                short = by_position and name not in values
                written.append(argument if short else f"{name}={argument}")
        return f"{self.name}({', '.join(written)})"


def _written(value: object) -> str:
    """Return the literal of a value; a slider's number without its rounding error."""
    return repr(float(f"{value:.8g}") if isinstance(value, float) else value)


def recreatable(factory: Callable) -> Callable:
    """Decorate a function that makes an `Explorer`, so that the explorer can say the code that recreates it.

    Each control of the explorer must be a parameter of the function.
    """
    signature = inspect.signature(factory)

    @functools.wraps(factory)
    def made(*args, **kwargs):
        explorer = factory(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        sources = _sources(inspect.currentframe().f_back, factory)
        written = {
            name: repr(value) if isinstance(value, _PLAIN) else sources.get(name, name)
            for name, value in given.items()
        }
        explorer.remember(Call(factory, written))
        return explorer

    return made


def _sources(frame: FrameType | None, factory: Callable) -> dict[str, str]:
    """Return the source code of the arguments of a call; empty if it cannot be read."""
    while frame is not None:  # other decorators may stand between
        node = _running_call(frame)
        if node is not None and ast.unparse(node.func).split(".")[-1] == factory.__name__:
            texts = [ast.unparse(one) for one in node.args]
            named = {one.arg: ast.unparse(one.value) for one in node.keywords if one.arg}
            if any(isinstance(one, ast.Starred) for one in node.args):
                return {}
            return dict(inspect.signature(factory).bind_partial(*texts, **named).arguments)
        frame = frame.f_back
    return {}


def _running_call(frame: FrameType) -> ast.Call | None:
    """Return the call that a frame is at."""
    code = frame.f_code
    position = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), None)
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and position == (
            node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
        ):  # fmt: skip
            return node
    return None
