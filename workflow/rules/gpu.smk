# From the `gpu` resource to a backend. Snakemake counts GPUs and clips what a rule asks for to
# what `--resources gpu=N` grants; which of them a job gets is up to ngsgpu, which leases them.


def backend_options(wildcards, resources):
    """Options of ngsgpu for the GPUs that the job was granted; none means the CPU."""
    if resources.gpu == 0:
        return "--backend cpu"
    return f"--backend cuda --gpus {resources.gpu}"
