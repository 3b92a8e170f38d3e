"""A JupyterHub on one machine, to try: every user has a copy of the notebooks, and progress, in a folder of their own.

    COURSE_HUB_PASSWORD=… .venv/bin/jupyterhub -f course_lib/lab/hub/jupyterhub_config.py

Everyone who knows the password can log in under any name, and all servers run as the Linux user who starts the hub. So
the hub keeps users apart, and the operating system does not: a class needs DockerSpawner or Kubernetes, and an
authenticator that knows its users. notebooks/INSTRUCTORS.md shows both.
"""

import os
import sys
from pathlib import Path

from platformdirs import user_data_path

c = get_config()

if len(os.environ.get("COURSE_HUB_PASSWORD", "")) < 8:
    sys.exit("COURSE_HUB_PASSWORD must hold the password of the class, of 8 characters or more.")

folder = Path(os.environ.get("COURSE_HUB_FOLDER", user_data_path("attention-course") / "hub"))
folder.mkdir(parents=True, exist_ok=True)

c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.JupyterHub.db_url = f"sqlite:///{folder / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(folder / "cookie_secret")

c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ["COURSE_HUB_PASSWORD"]
c.Authenticator.allow_all = True
c.Authenticator.username_pattern = r"[a-z0-9][\w.-]*$"  # a folder has this name

c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(folder / "users" / "{username}")
c.Spawner.cmd = [sys.executable, "-m", "course_lib.lab.hub"]
c.Spawner.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120  # a busy machine takes its time

# The proxy that comes from PyPI; configurable-http-proxy of npm takes the same options.
c.ConfigurableHTTPProxy.command = [str(Path(sys.executable).with_name("configurable-http-proxy"))]
c.ConfigurableHTTPProxy.pid_file = str(folder / "proxy.pid")
