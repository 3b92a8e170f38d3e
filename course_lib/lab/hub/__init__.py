"""The course for a class on JupyterHub: `python -m course_lib.lab.hub` is what the hub starts for each user."""
