#!/usr/bin/env bash
# Installs ngsgpu into its conda environment. Snakemake runs this once, in the working directory,
# with the environment active. Where the package comes from, the first that holds:
#   1. NGSGPU_SOURCE: anything that pip installs. The workflow sets it to its own checkout when it
#      runs from one, so that package and workflow are of one version; set it yourself for another.
#   2. the package index.
# A checkout is installed in editable mode: a pull or an edit needs no new environment.
set -euo pipefail

VERSION=0.1.0
source=${NGSGPU_SOURCE:-ngsgpu==$VERSION}

if [[ -f $source/pyproject.toml ]]; then
    python -m pip install --no-input --editable "$source"
else
    python -m pip install --no-input "$source"
fi
ngsgpu --version
