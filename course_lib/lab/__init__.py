"""`python -m course_lib.lab` opens the course in JupyterLab."""

#: What the notebooks say of their language. JupyterLab writes what a kernel says into the notebook that it opens: with a
#: version in it, every notebook would count as changed once it is open.
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
