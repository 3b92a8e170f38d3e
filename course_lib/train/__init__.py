"""Train a translator on real sentences, in one process or many: ``python -m course_lib.train --help``."""

from course_lib.train.folder import RunFolder
from course_lib.train.processes import Processes
from course_lib.train.run import Moment, Run, bleu
from course_lib.train.settings import Settings

__all__ = ["Moment", "Processes", "Run", "RunFolder", "Settings", "bleu"]
