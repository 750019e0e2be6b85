# Where conda environments may be, and where they get ngsgpu from: a workflow that runs from a checkout of the project
# installs that checkout, so that workflow and package are of one version. A workflow loaded from
# elsewhere has no package beside it; envs/ngsgpu.post-deploy.sh then asks the package index. A
# value that the user has set stays.

import os
import subprocess
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod


def checkout_of(environment):
    """The checkout that holds this workflow; None if there is none.

    ``source_path`` gives a copy in Snakemake's cache; the file itself is in its flag.
    """
    root = Path(environment.flags["sourcecache_entry"]).parents[1]
    return root.resolve() if (root / "ngsgpu" / "__init__.py").is_file() else None


def commit_of(checkout):
    """Its commit, with ``-dirty`` if files were changed since; empty if git does not know it."""
    if checkout is None or not (checkout / ".git").exists():
        return ""
    describe = "describe --always --dirty --abbrev=12 --exclude=*"
    command = ["git", "--no-optional-locks", "-C", checkout, *describe.split()]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


CHECKOUT = checkout_of(workflow.source_path("../../../envs/ngsgpu.yaml"))
if CHECKOUT:
    # Where conda environments get ngsgpu from.
    os.environ.setdefault("NGSGPU_SOURCE", str(CHECKOUT))


def check_conda_folder(settings):
    """Refuse conda environments in a path with a space.

    Snakemake cannot run their post-deploy scripts there, nor can QUAST be run.

    Raises:
        WorkflowError: the folder's path has a space.
    """
    folder = os.path.abspath(settings.conda_prefix or ".snakemake/conda")
    if DeploymentMethod.CONDA in settings.deployment_method and len(folder.split()) > 1:
        raise WorkflowError(
            f"conda environments do not work in '{folder}', whose path has a space; "
            "name a folder for them by --conda-prefix"
        )


check_conda_folder(workflow.deployment_settings)


def script_file(name):
    """A script of the workflow's, as an input: a changed one is a reason to run its jobs again.

    Of a workflow at a git source, Snakemake makes a new copy for each run, whose time says nothing;
    another tag has another address, which it compares.
    """
    path = workflow.source_path(f"../../../scripts/{name}")
    origin = path.flags["sourcecache_entry"]
    return path if Path(origin).is_file() else ancient(path)
