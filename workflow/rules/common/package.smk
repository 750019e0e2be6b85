# Where conda environments may be, and where they get ngsgpu from: a workflow that runs from a checkout
# of the project installs that checkout, and one that is loaded from a git repository installs the same
# commit of it, so that workflow and package are of one version. For any other there is no package
# beside it; envs/ngsgpu.post-deploy.sh then asks the package index. A value that the user has set
# stays.

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import quote, unquote

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod


def checkout_of(environment):
    """The checkout that holds this workflow; None if there is none.

    ``source_path`` gives a copy in Snakemake's cache; the file itself is in its flag.
    """
    root = Path(environment.flags["sourcecache_entry"]).parents[1]
    return root.resolve() if (root / "ngsgpu" / "__init__.py").is_file() else None


# Where Snakemake finds a file of a repository, and where pip finds that repository.
REPOSITORIES = {
    r"git\+file://(?P<repo>/.+)/{file}@(?P<ref>.+)": "git+file://{repo}@{ref}",
    r"https://raw\.githubusercontent\.com/(?P<repo>[^/]+/[^/]+)/(?P<ref>.+)/{file}": (
        "git+https://github.com/{repo}@{ref}"
    ),
    r"https://(?P<host>[^/]+)/api/v4/projects/(?P<repo>[^/]+)/repository/files/{file}/raw\?ref=(?P<ref>.+)": (
        "git+https://{host}/{repo}@{ref}"
    ),
}


def repository_of(environment):
    """The git repository that this workflow was loaded from, as pip takes it; None for another place."""
    origin = str(environment.flags["sourcecache_entry"])
    for pattern, source in REPOSITORIES.items():
        if found := re.fullmatch(
            pattern.format(file="envs(?:/|%2F)ngsgpu.yaml"), origin
        ):
            parts = {
                name: quote(unquote(part)) for name, part in found.groupdict().items()
            }
            return source.format(**parts)
    return None


def commit_of(checkout):
    """The commit of a checkout, with ``-dirty`` if files were changed since; empty if git does not know it."""
    if checkout is None or not (checkout / ".git").exists():
        return ""
    describe = "describe --always --dirty --abbrev=12 --exclude=*"
    command = ["git", "--no-optional-locks", "-C", checkout, *describe.split()]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


ENVIRONMENT = workflow.source_path("../../../envs/ngsgpu.yaml")
CHECKOUT = checkout_of(ENVIRONMENT)
if PACKAGE := CHECKOUT or repository_of(ENVIRONMENT):
    # Where conda environments get ngsgpu from.
    os.environ.setdefault("NGSGPU_SOURCE", str(PACKAGE))


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
