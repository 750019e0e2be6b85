# Memory and run time that jobs ask for: what the config says, or more where the inputs are large; and
# twice as much on each retry. And which jobs start first. Functions and constants only.

import json
import math
import os

from snakemake.iocontainers import InputFiles

# Where not all jobs that are ready can start: those first whose followers take longest. Otherwise the
# last sample may be corrected when GPUs have nothing else left, and its assemblies follow alone. All
# jobs on GPUs come before those on CPUs, which could leave them no cores.
PRIORITY = {
    "trim": 5,
    "deplete": 4,
    "correct": 3,
    "extend": 2,
    "database": 1,
    "merge": 1,
    "classify": 1,
}
MIB = 1 << 20
# FASTQ that is compressed becomes about this many times larger.
UNPACKED = 5
# MB of memory, and CPU seconds, for each MB of FASTQ text. Correction plans 480 bytes for a read's
# tables, 1.25 for a base and 30 for results (docs/correct.md), 2.5 for each byte of FASTQ at 100 bases
# a read; extension took about as much. Times are four times those in docs/benchmarks.md, for slower
# machines and harder data. Those of assembly and unitigs are allowances.
PER_MB = {
    "correct": (4, 1.2),
    "extend": (3, 3.6),
    "merge": (0, 0.05),
    "trim": (0, 0.2),
    "deplete": (0, 0.05),
    "classify": (0, 0.2),
    "extract": (0, 0.1),
    "assemble": (2, 4),
    "unitigs": (2, 0.4),
}
# MB a second at which a partition is read from a slow disk.
LOADING = 100
# GPU memory that classification and building take besides the index, MB.
GPU_WORKSPACE = 2048
# GPU bytes for each host byte that building a partition is planned to take.
GPU_BUILD_SHARE = 0.75


def unpacked_mb(paths):
    """Size of the text of files, in MB.

    Raises:
        FileNotFoundError: a file is not there yet; Snakemake then asks again before the job runs.
    """
    sizes = sizes_of(list(paths))
    return (
        sum(
            size * (UNPACKED if str(path).endswith(PACKED_ENDINGS) else 1)
            for path, size in zip(paths, sizes, strict=True)
        )
        / 1e6
    )


def sizes_of(paths):
    """Sizes of files in bytes: where they are stored, if that is elsewhere.

    Raises:
        FileNotFoundError: a file is not there yet.
    """
    if any(getattr(path, "is_storage", False) for path in paths):
        # Nothing is retrieved before the job starts, and Snakemake needs its resources by then.
        return InputFiles(toclone=paths).size_files
    # Snakemake knows a missing input by its path as it was given, which Path may change.
    return [os.stat(str(path)).st_size for path in paths]


def memory_for(stage):
    """Function of a job: memory for the reads that it takes, at least what the config says."""

    def mem_mb(wildcards, input, attempt):
        mb = PER_MB[stage][0] * unpacked_mb(input)
        return max(config[stage]["mem_mb"], math.ceil(mb)) * 2 ** (attempt - 1)

    return mem_mb


def minutes_for(stage):
    """Function of a job: minutes for the reads that it takes, at least what the config says."""

    def runtime(wildcards, input, attempt):
        minutes = needed_minutes(stage, input)
        return max(config[stage]["runtime"], minutes) * 2 ** (attempt - 1)

    return runtime


def needed_minutes(stage, reads):
    """Minutes that a stage takes for files of reads."""
    seconds = PER_MB[stage][1] * unpacked_mb(reads) / config[stage]["threads"]
    return math.ceil(seconds / 60)


def index_memory(wildcards, input, attempt):
    """Memory for indexing the host: 8 bytes for one k-mer in four, and the index."""
    return max(
        config["deplete"]["mem_mb"], math.ceil(4 * unpacked_mb(input) + 500)
    ) * 2 ** (attempt - 1)


def depletion_memory(wildcards, input, attempt):
    """Memory for depletion: the host's index, which is mapped, and batches of reads."""
    index_mb = unpacked_mb([input.host])
    return max(config["deplete"]["mem_mb"], math.ceil(index_mb + 1000)) * 2 ** (
        attempt - 1
    )


def planned_partition(wildcards, input):
    """What the plan says of a job's partition.

    None if planning failed, or if the sheet asks for more partitions than the last
    plan has: it is made anew before the job runs.
    """
    try:
        plan = json.loads(Path(input.plan).read_text())
        return plan["partitions"][int(wildcards.partition)]
    except (ValueError, LookupError):
        return None


def planned_memory(key, least_mb):
    """Memory of a partition's job, from the plan: ``key`` of it, and what programs take."""

    def mem_mb(wildcards, input, attempt):
        planned = planned_partition(wildcards, input) or {key: 0}
        return (math.ceil(planned[key] / MIB) + least_mb) * 2 ** (attempt - 1)

    return mem_mb


def planned_gpu_memory(key, share=1.0):
    """GPU memory of a partition's job, from the plan, in MB; 0 without a GPU.

    Nothing in the workflow enforces it: a profile may choose among cards by it.
    """

    def gpu_mem_mb(wildcards, input):
        planned = planned_partition(wildcards, input)
        if planned is None or not GPU_LIMIT:
            return 0
        return math.ceil(share * planned[key] / MIB) + GPU_WORKSPACE

    return gpu_mem_mb


def reference_mb(wildcards, input):
    """Size of the reference sequences of a job's database, in MB: they are its first inputs."""
    named = files_in(DATABASES[wildcards.database].references, REFERENCE_ENDINGS)
    return unpacked_mb(input[: len(named)])


def plan_memory(wildcards, input, attempt):
    """Memory for planning a database, or for adding to its last partition.

    As much as building one of its partitions takes, and half of that again.
    """
    partitions = DATABASES[wildcards.database].partitions
    # Bytes for each base: 21 features in 112 bases, 28 bytes each.
    added = 1.5 * 5.25 * reference_mb(wildcards, input) / partitions
    return max(4000, math.ceil(added)) * 2 ** (attempt - 1)


def build_minutes(wildcards, input, attempt):
    """Minutes for a partition: those of the config, or a minute for each 10 MB of sequence."""
    partitions = DATABASES[wildcards.database].partitions
    minutes = math.ceil(reference_mb(wildcards, input) / partitions / 10)
    return max(config["database"]["runtime"], minutes) * 2 ** (attempt - 1)


def reads_there(wildcards, input):
    """The reads of a batch's job, as its sheet names them.

    They are no input of the job. When it runs, all are there; but jobs that make them anew (they
    were deleted, or a sample came in) may be still to come when its resources are first asked for.
    """
    names = BATCHES[wildcards.database][wildcards.batch]
    rows = rows_of(input.samples)
    files = [file for name, *own, _ in rows if name in names for file in own]
    return [file for file in files if file and Path(file).exists()]


def batch_minutes(wildcards, input, attempt):
    """Minutes to open a partition and to take the reads of a batch through it."""
    planned = planned_partition(wildcards, input) or {"index_bytes": 0}
    opening = math.ceil(planned["index_bytes"] / 1e6 / LOADING / 60)
    minutes = opening + needed_minutes("classify", reads_there(wildcards, input))
    return max(config["classify"]["runtime"], minutes) * 2 ** (attempt - 1)
