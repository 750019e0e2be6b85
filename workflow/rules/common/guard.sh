# What the shell of a guarded job does (failures.smk says why). It has been given the lists
# guard_inputs, guard_outputs, guard_folders, guard_kept (what a failure leaves alone if it is there:
# an earlier run's, or of stages before one that fails) and guard_reads (files without any reads leave
# nothing to do), guard_retries and guard_goes_on. After `guard LOG` the commands that follow are guarded.
#
# A note has the job's log and the log's last error, a line each; that of a folder lies in it. Tries are
# counted beside the log: Snakemake says which one it is to resources only, and those may be the ones of
# a workflow that takes the rule as a module.

note_of() {
    local name=$1 kind
    if [[ -d $name ]]; then name=$name/ngsgpu; fi
    for kind in failed skipped; do
        if [[ -f $name.$kind ]]; then echo "$name.$kind"; fi
    done
}

noted() { [[ -n $(note_of "$1") ]]; }

# An empty file, valid as what its name says.
blank() {
    case $1 in
        *.gz) printf '\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0' ;;
        *.json | *.biom) echo '{}' ;;
        *.html) echo '<!DOCTYPE html><title>No result</title><p>No result' ;;
    esac > "$1"
}

put_note() {
    local kind=$1 text=$2 file
    shift 2
    for file in "$@"; do
        if [[ -d $file ]]; then file=$file/ngsgpu; else blank "$file"; fi
        printf '%s\n' "$text" > "$file.$kind"
    done
}

note() {
    local kind=$1 message=$2
    shift 2
    put_note "$kind" "$guard_log"$'\n'"$message" "$@"
    echo "$kind, the study goes on without: $message ($guard_log)" >&2
}

pass_on() {
    local from
    from=$(note_of "$1")
    shift
    put_note "${from##*.}" "$(< "$from")" "$@"
}

last_error() {
    tail -n 50 "$guard_log" | grep -i error | tail -n 1 || grep . "$guard_log" | tail -n 1 || true
}

# The server that classifies for this job has ended, and would have for all others.
without_server() { last_error | grep -qE 'no server listens|the server (has|ended)'; }

settle() {
    local status=$1 file
    case $status in 130 | 143) exit "$status" ;; esac
    if ((status == 0)); then rm -f "$guard_log.tries"; exit 0; fi
    if last_error | grep -qE 'GPU|CUDA|backend cuda'; then
        echo "Snakemake runs everything on the CPU without --resources gpu=N; with" \
            "NGSGPU_BACKEND=auto in the environment, what cannot use a GPU." >&2
        exit "$status"
    fi
    if last_error | grep -q 'No space left' || without_server; then exit "$status"; fi
    if ((status != 2)) && { ((status == 3 || status > 128)) \
        || tail -n 20 "$guard_log" | grep -qiE 'memory|bad_alloc|time limit'; }; then
        echo "$status" >> "$guard_log.tries"
        if (($(wc -l < "$guard_log.tries") <= guard_retries)); then exit "$status"; fi
    fi
    rm -f "$guard_log.tries"
    if ! $guard_goes_on; then exit "$status"; fi
    note failed "$(last_error)" "${guard_outputs[@]}" "${guard_folders[@]}"
    for file in "${guard_kept[@]}"; do
        if [[ ! -e $file ]]; then note failed "$(last_error)" "$file"; fi
    done
    exit 0
}

# Whether a file, compressed by gzip or not, holds nothing; one that cannot be read does not.
is_empty() {
    local first
    first=$(set -o pipefail; gzip -cdf -- "$1" 2> /dev/null | head -c 1 | tr '\0' x) && [[ -z $first ]]
}

lack_reads() {
    local file
    for file in "${guard_reads[@]}"; do is_empty "$file" || return 1; done
    ((${#guard_reads[@]} > 0))
}

guard() {
    local file out
    guard_log=$1
    for out in "${guard_outputs[@]}" "${guard_kept[@]}"; do
        # Of an earlier run; where an output is kept, an empty one stands for none.
        if noted "$out"; then rm -f "$out" "$out.failed" "$out.skipped"; fi
    done
    for out in "${guard_folders[@]}"; do mkdir -p "$out"; done
    for file in "${guard_inputs[@]}"; do
        if noted "$file"; then
            pass_on "$file" "${guard_outputs[@]}" "${guard_folders[@]}"
            for out in "${guard_kept[@]}"; do [[ -e $out ]] || pass_on "$file" "$out"; done
            exit 0
        fi
    done
    if lack_reads; then
        note skipped "no reads" "${guard_outputs[@]}" "${guard_folders[@]}"
        exit 0
    fi
    trap 'settle $?' EXIT
}
