#!/usr/bin/env bash
# Installs ngsgpu into its conda environment, with what its reports, indexes and GPUs need.
# Snakemake runs this once, in the working directory, with the environment active.
#
# NGSGPU_SOURCE  where the package comes from: anything that pip installs. The workflow sets it to
#                its own checkout or git repository when it runs from one, so that package and workflow
#                are of one version; set it yourself for another. Without it: the package index.
# NGSGPU_CUDA    12, 13 or none: CuPy and the compiler of that version of CUDA. The default is 12,
#                which works with every driver from 525 on, and is installed without a GPU too: the
#                machine that builds an environment is not always the one that uses it.
#
# A checkout is installed in editable mode: a pull or an edit needs no new environment.
set -euo pipefail

VERSION=0.1.0
source=${NGSGPU_SOURCE:-ngsgpu==$VERSION}
cuda=${NGSGPU_CUDA:-12}

case $cuda in
    12 | 13) extras=report,index,cuda$cuda ;;
    none) extras=report,index ;;
    *)
        echo "NGSGPU_CUDA is '$cuda'; it must be 12, 13 or none" >&2
        exit 2
        ;;
esac

if [[ -f $source/pyproject.toml ]]; then
    python -m pip install --no-input --editable "$source[$extras]"
else
    # Any other source, by whichever spelling, and the extras of the same package.
    python -m pip install --no-input "$source" "ngsgpu[$extras]" || {
        echo "ngsgpu cannot be installed from '$source': set NGSGPU_SOURCE to a checkout, a wheel or" \
            "git+https://HOST/REPOSITORY@TAG, and run snakemake again" >&2
        exit 1
    }
fi
ngsgpu --version
