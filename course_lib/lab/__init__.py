"""`python -m course_lib.lab` opens the course in JupyterLab."""
