"""Studies: where the Snakemake workflow is, and how a new study of it begins.

``reads`` recognises samples, lanes and mates by the names of FASTQ files; ``study`` writes config,
sheets and profile. A wheel carries the workflow in ``files``; in a checkout it is beside the
package.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def workflow_root() -> Path:
    """Return the directory that holds ``workflow/``, ``envs/``, ``scripts/`` and ``config/``."""
    packed = _HERE / "files"
    return packed if packed.is_dir() else _HERE.parents[1]


def snakefile() -> str:
    """Return the path of the workflow's Snakefile, which a study imports as a module."""
    return str(workflow_root() / "workflow" / "Snakefile")
