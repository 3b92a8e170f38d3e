"""The course as web pages: ``python -m course_lib.tools.site [FOLDER]``.

Everything that a page needs lies in the folder: the pages read the same offline, and without a kernel.
"""
