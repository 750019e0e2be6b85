# Where conda environments get ngsgpu from: a workflow that runs from a checkout of the project
# installs that checkout, so that workflow and package are of one version. A workflow loaded from
# elsewhere has no package beside it; envs/ngsgpu.post-deploy.sh then asks the package index. A
# value that the user has set stays.

import os
from pathlib import Path


def offer_checkout(pyproject):
    """Name the checkout that holds this workflow to the post-deploy script, if there is one.

    ``source_path`` gives a copy in Snakemake's cache; the file itself is in its flag.
    """
    root = Path(pyproject.flags["sourcecache_entry"]).parent
    if (root / "ngsgpu" / "__init__.py").is_file():
        os.environ.setdefault("NGSGPU_SOURCE", str(root.resolve()))


offer_checkout(workflow.source_path("../../pyproject.toml"))
