"""Two errors of cells, in words: a name that an earlier cell of the notebook makes, and a cell that was stopped.

All other errors, and names that no earlier cell makes, keep IPython's message.
"""

import json
import linecache
import os
import symtable
from pathlib import Path

from course_lib import messages


def explain(shell=None) -> None:
    """Let IPython's shell (this one, where left out) explain the two; one with handlers of its own keeps them.

    The kernel of `make lab` calls it when it starts, because after a restart nothing of the notebook has run.
    """
    if shell is None:
        from IPython import get_ipython

        shell = get_ipython()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((NameError, KeyboardInterrupt), _show)


def _show(shell, kind: type, error: BaseException, traceback, tb_offset: int | None = None) -> None:
    """Show an error: what IPython calls instead of showing it itself."""
    if kind is KeyboardInterrupt:
        shell._showtraceback(kind, error, [_where_stopped(shell, traceback)])
        return
    if kind is NameError and comes_from_an_earlier_cell(error.name, *_running(shell)):
        error.add_note(messages.FROM_AN_EARLIER_CELL.format(name=error.name))
    shell.showtraceback((kind, error, traceback), running_compiled_code=True)


def _running(shell) -> tuple[str, str, str]:
    """Return the path of the notebook ("" where nothing says it), and id and source of the cell that runs."""
    request = getattr(shell, "get_parent", dict)() or {}
    path = os.environ.get("JPY_SESSION_NAME", "")
    which = request.get("metadata", {}).get("cellId", "")
    return path, which, request.get("content", {}).get("code", "")


def comes_from_an_earlier_cell(name: str | None, path: str, which: str, source: str) -> bool:
    """Whether a name is bound by a cell above the running one, in the notebook as it was last saved.

    Args:
        name: that is not defined.
        path: of the notebook.
        which, source: id and text of the cell that runs; a cell that is not in the file has no cells above it.
    """
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        cells = [cell for cell in cells if cell["cell_type"] == "code"]
        texts = ["".join(cell["source"]) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError):  # no notebook, or none of this kernel
        return False
    here = [n for n, cell in enumerate(cells) if which and cell.get("id") == which]
    here = here or [n for n, text in enumerate(texts) if text.strip() == source.strip()]
    return bool(here) and any(_binds(text, name) for text in texts[: here[0]])


def _binds(source: str, name: str | None) -> bool:
    """Whether a cell assigns, defines or imports a name; lines with magics are left out."""
    lines = source.splitlines()
    python = "\n".join("" if line.startswith(("%", "!", "?")) else line for line in lines)
    try:
        symbol = symtable.symtable(python, "cell", "exec").lookup(name)
    except (SyntaxError, KeyError):
        return False
    return symbol.is_assigned() or symbol.is_imported()


def _where_stopped(shell, traceback) -> str:
    """Say in which line of the notebook a cell was stopped; what PyTorch did just then is nobody's concern."""
    frame, line = traceback.tb_frame, traceback.tb_lineno
    while traceback is not None:
        if traceback.tb_frame.f_globals is shell.user_global_ns:
            frame, line = traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
    code = linecache.getline(frame.f_code.co_filename, line).strip()
    function = frame.f_code.co_name
    return (messages.STOPPED if function == "<module>" else messages.STOPPED_IN).format(
        line=line, code=code, function=function
    )
