# How many GPUs a job asks for, and the backend that it then computes on. Snakemake counts GPUs and
# clips what a rule asks for to what `--resources gpu=N` grants; which of them a job gets is up to
# ngsgpu, which leases them.

import os
from pathlib import Path

from snakemake.exceptions import WorkflowError


def gpu_limit():
    """The N of ``--resources gpu=N``; None without it.

    A job that runs elsewhere than here (on a cluster) is run by a separate Snakemake that is not
    told; it learns of the limit from its environment.
    """
    if workflow.is_main_process:
        limit = workflow.global_resources.get("gpu")
        os.environ["NGSGPU_LIMIT"] = "none" if limit.value is None else str(limit.value)
    limit = os.environ.get("NGSGPU_LIMIT", "none")
    return int(limit) if limit.isdecimal() else None


GPU_LIMIT = gpu_limit()


envvars:
    "NGSGPU_LIMIT",
    *["NGSGPU_BACKEND"] * ("NGSGPU_BACKEND" in os.environ),


def has_gpu():
    """Whether a driver shows a GPU here, NVIDIA's or that of Windows beneath Linux, and none is hidden."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    devices = Path(os.sep, "dev")
    return any(devices.glob("nvidia[0-9]*")) or (devices / "dxg").exists()


def check_gpu():
    """Refuse to start jobs that insist on a GPU on a machine that has none.

    Raises:
        WorkflowError: they would run here, and there is no GPU.
    """
    is_here = workflow.is_main_process and workflow.local_exec and not workflow.dryrun
    if is_here and "NGSGPU_BACKEND" not in os.environ and not has_gpu():
        raise WorkflowError(
            f"--resources gpu={GPU_LIMIT} asks for GPUs, but no NVIDIA GPU can be used here (see "
            "nvidia-smi -L and CUDA_VISIBLE_DEVICES). Either leave out --resources gpu=N: everything "
            "then runs on the CPU, with the same results; or run it where there is a GPU and its driver"
        )


# MB of text of reads for each further GPU of `gpu: auto`. Two GPUs correct 68 GB in two thirds of the
# time of one (human, 10-fold), and 7 GB in little less than one.
TEXT_FOR_A_GPU = 30_000


def wanted_gpus(stage, reads=None):
    """GPUs for a stage: as many as the config says, if any are granted.

    Without a limit Snakemake would grant any number, also where there is no GPU, and also to those
    who use this workflow as a module and have never heard of it. So no limit means no GPU.
    With ``auto`` it is one, and more for large reads; for unknown ones as many as are granted.
    """
    wanted = config[stage].get("gpu", 0)
    if wanted == "auto":
        wanted = (
            GPU_LIMIT or 0
            if reads is None
            else 1 + int(unpacked_mb(reads) / TEXT_FOR_A_GPU)
        )
    return min(wanted, GPU_LIMIT or 0)


def gpus(*stages):
    """GPUs that a job asks for: as many as one of its stages takes."""
    if not max(map(wanted_gpus, stages)):
        return 0

    def gpu(wildcards, input):
        check_gpu()
        return max(wanted_gpus(stage, input) for stage in stages)

    return gpu


def backend_options(wildcards, resources):
    """Options of ngsgpu for the GPUs that the job was granted; none means the CPU.

    A job with GPUs insists on them, unless NGSGPU_BACKEND says otherwise.
    """
    granted = resources.gpu
    if isinstance(granted, str):
        # `auto` for reads that are not there yet: asked again before the job runs.
        return f'--backend "${{NGSGPU_BACKEND:-cuda}}" --gpus {granted}'
    granted = granted if GPU_LIMIT is None else min(granted, GPU_LIMIT)
    if granted == 0:
        return "--backend cpu"
    return f'--backend "${{NGSGPU_BACKEND:-cuda}}" --gpus {granted}'
