# What becomes of a job that fails. A sample that cannot be read, or that SPAdes cannot assemble,
# must not cost the other samples their results, nor the study its report, and Snakemake makes no report
# of outputs that are not there. So while the workflow runs, a job of a sample whose command fails for
# good makes its outputs empty (each valid as what its name says), writes beside each why there is nothing
# in it (NAME.failed, or NAME.skipped, which ngsgpu/report/absent.py reads), and ends well (guard.sh); jobs
# that get such an input pass it on instead of running. results/status.tsv lists what failed. The last job,
# check_study, removes these outputs and fails, so that a run ends as Snakemake's users expect: what failed
# is not there, the exit status says so, and the next run tries it again. Functions and constants only.
#
# Without check_study among the jobs, and with a default storage, which carries outputs from job to job,
# but not what lies beside them, a job fails as any other does and leaves nothing.
#
# Only lack of memory and time can be remedied by trying again: then the command was killed, ended with 3
# (ngsgpu's exit status for too little memory), or its log ends with such words. All else fails at
# once, wrong use and unreadable input (ngsgpu's exit status 2) in any case. What the machine lacks (a
# GPU that can be used, room on the disk) is no sample's fault: it fails the job as ever.

import os
import shlex
from pathlib import Path

# How often a job is tried again; memory and run time double each time.
MOST_RETRIES = 2
# The same for Snakemake, which gives the job its memory: a cluster's job runs in a separate
# Snakemake, and one that tried again would do so in the memory that was too little.
RETRIES = MOST_RETRIES if workflow.is_main_process else 0

# What goes_on says; jobs that run elsewhere learn it from their environment.
os.environ.setdefault("NGSGPU_FAILED_SAMPLES", "go on")


envvars:
    "NGSGPU_FAILED_SAMPLES",


# Rules and files that tell which samples failed, if jobs are left out by --until.
TELLING = ("all", "check_study", "complete")

GUARD = workflow.source_path("guard.sh")


# Has an entry once check_study is among the jobs.
CHECKS = []


def checked(targets):
    """Input function of check_study, which Snakemake asks for its input if it is to run at all."""

    def function(wildcards):
        CHECKS.append("check_study")
        return targets(wildcards)

    return function


def is_told():
    """Whether check_study will tell which samples failed; a module's rules may have a prefix."""
    settings = workflow.dag_settings
    names = [Path(name).name for name in settings.until]
    is_left_out = settings.omit_from or not all(
        any(name == own or name.endswith(f"_{own}") for own in TELLING)
        for name in names
    )
    return bool(CHECKS) and not is_left_out


def goes_on():
    """Whether the study goes on without a sample that fails."""
    if not workflow.is_main_process:
        return os.environ["NGSGPU_FAILED_SAMPLES"] != "stop"
    is_stored = workflow.storage_settings.default_storage_provider is not None
    goes = is_told() and not is_stored
    if not goes:
        # It stays so for jobs elsewhere, of which some may be another module's: all fail plainly.
        os.environ["NGSGPU_FAILED_SAMPLES"] = "stop"
    return goes


def guarded(inputs, output, kept=(), reads=()):
    """Shell commands that guard a job; outputs without a suffix are folders."""
    lists = {
        "inputs": inputs,
        "outputs": [path for path in output if Path(path).suffix],
        "folders": [path for path in output if not Path(path).suffix],
        "kept": kept,
        "reads": reads,
    }
    told = [
        f"guard_{name}=({' '.join(shlex.quote(str(path)) for path in paths)})"
        for name, paths in lists.items()
    ]
    told += [
        f"guard_retries={MOST_RETRIES}",
        f"guard_goes_on={'true' if goes_on() else 'false'}",
    ]
    return f". {shlex.quote(GUARD)}; {'; '.join(told)}; guard"


def guard(wildcards, input, output):
    """Guard of a sample's job; a note for an input is one for the outputs."""
    return guarded(input, output)


def guard_reads(wildcards, input, output):
    """Guard of a job of a program that fails without reads: then there is nothing to do."""
    return guarded(input, output, reads=listed(input.first))


def guard_plan(wildcards, input, output):
    """Guard of the job that plans a database: the one that is there stays if it fails."""
    return guarded(input, [output.plan], [output.manifest])


def guard_merged(wildcards, output):
    """Guard of a job that takes all existing results of all samples: some may have notes."""
    return guarded([], output)


def guard_classification(wildcards, input, output):
    """Guard of a job that takes samples, some of which may have notes, through a partition."""
    return guarded([input.plan, input.manifest, *input.get("partition", [])], output)


def guard_calls(wildcards, input, output):
    """Guard of the job that calls the reads of a sample, whose candidates are among others'."""
    return guarded([*input, *candidate_files(wildcards, input)], output)


def doubling(amount):
    """Function of the attempt: an amount of memory or time, doubled for each retry."""
    return lambda wildcards, attempt: amount * 2 ** (attempt - 1)
