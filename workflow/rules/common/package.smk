# Where conda environments may be, and where they get ngsgpu from: a workflow that runs from a checkout of the project
# installs that checkout, so that workflow and package are of one version. A workflow loaded from
# elsewhere has no package beside it; envs/ngsgpu.post-deploy.sh then asks the package index. A
# value that the user has set stays.

import os
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod


def offer_checkout(environment):
    """Name the checkout that holds this workflow to the post-deploy script, if there is one.

    ``source_path`` gives a copy in Snakemake's cache; the file itself is in its flag.
    """
    root = Path(environment.flags["sourcecache_entry"]).parents[1]
    if (root / "ngsgpu" / "__init__.py").is_file():
        os.environ.setdefault("NGSGPU_SOURCE", str(root.resolve()))


offer_checkout(workflow.source_path("../../../envs/ngsgpu.yaml"))


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
