# What becomes of a job that fails. A sample that cannot be read, or that SPAdes cannot assemble,
# must not cost the other samples their results, nor the study its report. Snakemake makes no report of
# outputs that are not there. So a job of a sample whose command fails for good makes its outputs empty
# (each valid as what its name says), writes beside each why there is nothing in it (NAME.failed, or
# NAME.skipped, which ngsgpu/report/absent.py reads), and ends well; jobs that get such an input pass it
# on instead of running. The rule check_study, after the report, fails as long as there is any. Functions
# and constants only.
#
# Where nobody would learn of it, the job fails as any other does and leaves nothing: if other files are
# asked for than the study's own, and with a default storage, which carries outputs from job to job, but
# not what lies beside them.
#
# Only memory and time can be mended by trying again: then the command was killed, ended with 3
# (ngsgpu's exit status for too little memory), or its log ends with such words. All else fails at
# once, wrong use and unreadable input (ngsgpu's exit status 2) in any case. What the machine lacks (a
# GPU that can be used, room on the disk) is no sample's fault: it fails the job as ever.

import os
import shlex
from pathlib import Path

# How often a job is tried again; memory and run time double each time.
MOST_RETRIES = 2
# The same for Snakemake, which gives the job its memory: a cluster's job runs in a Snakemake of its
# own, and one that tried again would do so in the memory that was too little.
RETRIES = MOST_RETRIES if workflow.is_main_process else 0

# What goes_on says; jobs that run elsewhere learn it from their environment.
os.environ.setdefault("NGSGPU_FAILED_SAMPLES", "go on")


envvars:
    "NGSGPU_FAILED_SAMPLES",


# Rules and files that tell, when they are made, which samples failed.
TELLING = ("all", "check_study", "complete")

# A note has the job's log and the log's last error, a line each; that of a folder lies in it. {inputs},
# {outputs}, {folders} and {kept} (what a failure leaves alone if an earlier run made it) are quoted
# lists. Called with the job's log; the commands after it are guarded. Tries are counted beside the log:
# Snakemake says which one it is to resources only, and those may be the ones of a workflow that takes
# the rule as a module.
GUARD = r"""
note_of() {{
    local name=$1 kind
    if [[ -d $name ]]; then name=$name/ngsgpu; fi
    for kind in failed skipped; do
        if [[ -f $name.$kind ]]; then echo "$name.$kind"; fi
    done
}}
noted() {{ [[ -n $(note_of "$1") ]]; }}
blank() {{
    case $1 in
        *.gz) printf '\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0' ;;
        *.json | *.biom) echo '{{}}' ;;
        *.html) echo '<!DOCTYPE html><title>No result</title><p>No result' ;;
    esac > "$1"
}}
put_note() {{
    local kind=$1 text=$2 file
    shift 2
    for file in "$@"; do
        if [[ -d $file ]]; then file=$file/ngsgpu; else blank "$file"; fi
        printf '%s\n' "$text" > "$file.$kind"
    done
}}
note() {{
    local kind=$1 message=$2
    shift 2
    put_note "$kind" "$guarded_log"$'\n'"$message" "$@"
    echo "$kind, the study goes on without: $message ($guarded_log)" >&2
}}
pass_on() {{
    local from
    from=$(note_of "$1")
    shift
    put_note "${{from##*.}}" "$(< "$from")" "$@"
}}
last_error() {{
    tail -n 50 "$guarded_log" | grep -i error | tail -n 1 || grep . "$guarded_log" | tail -n 1 || true
}}
settle() {{
    local status=$1 file
    case $status in 130 | 143) exit "$status" ;; esac
    if ((status == 0)); then rm -f "$guarded_log.tries"; exit 0; fi
    if last_error | grep -qE 'GPU|CUDA|backend cuda|No space left'; then exit "$status"; fi
    if ((status != 2)) && {{ ((status == 3 || status > 128)) \
        || tail -n 20 "$guarded_log" | grep -qiE 'memory|bad_alloc|time limit'; }}; then
        echo "$status" >> "$guarded_log.tries"
        if (($(wc -l < "$guarded_log.tries") <= {retries})); then exit "$status"; fi
    fi
    rm -f "$guarded_log.tries"
    if ! {goes_on}; then exit "$status"; fi
    note failed "$(last_error)" {outputs} {folders}
    for file in {kept}; do
        if [[ ! -e $file ]]; then note failed "$(last_error)" "$file"; fi
    done
    exit 0
}}
guard() {{
    local file out
    guarded_log=$1
    for out in {outputs} {kept}; do
        # Of an earlier run; where an output is kept, an empty one stands for none.
        if noted "$out"; then rm -f "$out" "$out.failed" "$out.skipped"; fi
    done
    for out in {folders}; do mkdir -p "$out"; done
    for file in {inputs}; do
        if noted "$file"; then
            pass_on "$file" {outputs} {folders}
            for out in {kept}; do [[ -e $out ]] || pass_on "$file" "$out"; done
            exit 0
        fi
    done
    trap 'settle $?' EXIT
}}
guard"""


def goes_on():
    """Whether the study goes on without a sample that fails: if its report and check are to be made."""
    if workflow.is_main_process:
        named = {Path(target).name for target in workflow.dag_settings.targets}
        tells = not named or any(
            name == own or name.endswith(f"_{own}") for name in named for own in TELLING
        )
        stored = workflow.storage_settings.default_storage_provider is not None
        os.environ["NGSGPU_FAILED_SAMPLES"] = "go on" if tells and not stored else "stop"
    return os.environ["NGSGPU_FAILED_SAMPLES"] != "stop"


def guarded(inputs, output, kept=()):
    """The text of GUARD for a job; outputs without a suffix are folders."""

    def quoted(paths):
        return " ".join(shlex.quote(str(path)) for path in paths)

    return GUARD.format(
        inputs=quoted(inputs),
        outputs=quoted(path for path in output if Path(path).suffix),
        folders=quoted(path for path in output if not Path(path).suffix),
        kept=quoted(kept),
        retries=MOST_RETRIES,
        goes_on="true" if goes_on() else "false",
    )


def guard(wildcards, input, output):
    """Guard of a sample's job; a note for an input is one for the outputs."""
    return guarded(input, output)


def guard_plan(wildcards, input, output):
    """Guard of the job that plans a database: the one that is there stays if it fails."""
    return guarded(input, [output.plan], [output.manifest])


def guard_merged(wildcards, output):
    """Guard of a job that takes what there is of all samples: some may have notes."""
    return guarded([], output)


def guard_classification(wildcards, input, output):
    """Guard of a job that takes samples, some of which may have notes, through a partition."""
    return guarded([input.plan, input.manifest, *input.get("partition", [])], output)


def guard_calls(wildcards, input, output):
    """Guard of the job that calls the reads of a sample, whose candidates are among others'."""
    return guarded([*input, *candidate_files(wildcards, input)], output)


def grown(amount):
    """Function of the attempt: an amount of memory or time, doubled for each retry."""
    return lambda wildcards, attempt: amount * 2 ** (attempt - 1)
