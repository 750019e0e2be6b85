"""Puts the Snakemake workflow into the wheel; everything else is in pyproject.toml.

The workflow stands at the top of the repository, where Snakemake's catalogue and modules expect it.
An installed package has it in ``ngsgpu/workflow/files``, for ``ngsgpu workflow init``.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithWorkflow(build_py):
    """Copy the package's modules, and the workflow beside them."""

    def run(self) -> None:
        """Build; an editable installation uses the workflow of its checkout."""
        super().run()
        if self.editable_mode:
            return
        root = Path(__file__).parent
        files = Path(self.build_lib, "ngsgpu", "workflow", "files")
        shutil.rmtree(files, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        for folder in ("config", "envs", "workflow"):
            shutil.copytree(root / folder, files / folder, ignore=ignored)
        for folder in ("scripts", "benchmarks/peers"):
            (files / folder).mkdir(parents=True)
            for script in (root / folder).glob("*.py"):
                shutil.copy(script, files / folder)


setup(cmdclass={"build_py": BuildWithWorkflow})
