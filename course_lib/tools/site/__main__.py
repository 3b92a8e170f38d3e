"""Write the site: ``python -m course_lib.tools.site [--to FOLDER] [NOTEBOOK …]``."""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from course_lib.tools import normal_form
from course_lib.tools.site import record, sources

ROOT = normal_form.NOTEBOOKS.parent
BUILD = ROOT / "build/site"


def recorded(path: Path, folder: Path) -> Path | None:
    """Record a notebook's explorers, unless that was done with the same cells and outputs; return where they are.

    None if it has no explorers, or could not be run; then its pictures stand still.
    """
    cells = record.needed_cells(nbformat.read(path, as_version=4))
    if not cells:
        return None
    shown = [[cell.source, cell.outputs] for cell in cells]
    key = json.dumps(shown).encode() + Path(record.__file__).read_bytes()
    kept = folder / f"{path.stem}-{hashlib.sha256(key).hexdigest()[:12]}"
    if not (kept / "explorers.json").exists():
        for old in folder.glob(f"{path.stem}-*"):
            shutil.rmtree(old)
        command = [sys.executable, "-m", record.__name__, str(path), str(kept)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            print(f"{path.stem} stands still:", (run.stderr.splitlines() or ["?"])[-1], flush=True)
            return None
        print(f"{path.stem} is recorded", flush=True)
    return kept


def write_site(folder: Path, notebooks: list[Path], build: Path = BUILD) -> None:
    """Record explorers, and let Sphinx write the site; what was made before is used again.

    Args:
        folder: of the site; emptied if it holds one.
        notebooks: in the order of the course.
        build: where recordings and intermediate files are kept.

    Raises:
        ValueError: if the folder holds something that is no site.
        subprocess.CalledProcessError: if Sphinx finds a fault.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / "searchindex.js").exists():
        raise ValueError(f"{folder} holds something else than a site; it is left as it is")
    with ThreadPoolExecutor(2) as pool:
        kept = list(pool.map(lambda path: recorded(path, build / "recorded"), notebooks))
    sources.write(build / "source", dict(zip(notebooks, kept, strict=True)))
    html = build / "html"
    shutil.rmtree(html, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "--fresh-env",
        "--fail-on-warning",
        "--keep-going",
    ]
    if notebooks != normal_form.paths():  # links lead to others
        command += ["-D", "suppress_warnings=myst.xref_missing"]
    conf = Path(__file__).parent
    subprocess.run([*command, "-c", str(conf), str(build / "source"), str(html)], check=True)
    for path in notebooks:  # to download: as it is in the course
        shutil.copy(path, html / "_sources" / path.relative_to(ROOT))
    for path in [html / ".doctrees", *html.rglob("*.map")]:  # for developers of the theme
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(html, folder)


def main() -> None:
    """Write the site and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", help="stems or file names; all where left out")
    parser.add_argument("--to", type=Path, default=ROOT / "site")
    arguments = parser.parse_args()
    write_site(arguments.to.resolve(), normal_form.paths(arguments.notebooks))
    print(f"Open {arguments.to / 'index.html'}")


if __name__ == "__main__":
    main()
