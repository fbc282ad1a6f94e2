"""Executes a notebook against a results folder and fails on any error.

    python notebooks/execute.py NOTEBOOK RESULTS [--save FILE]

The notebook itself stays as it is, without outputs; `--save` writes the executed one elsewhere.
"""

import argparse
import os
import pathlib
import sys

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute a notebook against a results folder.")
    parser.add_argument("notebook", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path, help="folder with <experiment>/<run>/")
    parser.add_argument("--save", type=pathlib.Path, help="write the executed notebook here")
    arguments = parser.parse_args()

    os.environ["RESULTS"] = str(arguments.results.resolve())
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(arguments.notebook, as_version=4)
    folder = arguments.notebook.resolve().parent
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    try:
        client.execute()
    except CellExecutionError as error:
        print(f"{arguments.notebook}: {error}", file=sys.stderr)
        return 1
    finally:
        if arguments.save:
            nbformat.write(notebook, arguments.save)
    print(f"{arguments.notebook}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells executed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
