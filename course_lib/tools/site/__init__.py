"""The course as a web site: ``python -m course_lib.tools.site [--to FOLDER] [NOTEBOOK …]``.

record      moves every explorer of a notebook, and keeps the pictures
sources     what Sphinx reads: notebooks with players for their explorers, the API, the first page
conf        Sphinx's configuration
static/     what runs in the browser
"""
