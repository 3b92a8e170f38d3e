"""exit() in an attempt raises instead of shutting down the kernel, also where one attempt runs inside another."""

import sys
from types import SimpleNamespace

import pytest

from course_lib.exercises.sandbox import restored


class Shell:
    def ask_exit(self):
        raise AssertionError("the kernel is shut down")


def test_the_shell_is_put_back_after_nested_attempts(monkeypatch):
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with restored(lambda: None):
        with restored(lambda: None), pytest.raises(SystemExit):
            shell.ask_exit()
        with pytest.raises(SystemExit):  # the outer attempt still runs
            shell.ask_exit()
    assert vars(shell) == {}
