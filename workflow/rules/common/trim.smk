# Which program trims, and by which options; which reads are checked. Functions only.


def trimmed_by(engine, samples):
    """Regular expression of the samples that an engine trims: the given one, or one of no sample."""
    wanted = samples if config["trim"]["engine"] == engine else one_of([])
    return apart("trim", wanted)


def trimmed_files(wildcards, output):
    """Options for the files of the trimmed reads, which are fastp's."""
    second = repeated("--out2", output.second) if "second" in output.keys() else ""
    return f"{repeated('--out1', output.first)} {second}".rstrip()


def adapter_options(wildcards, input):
    """Commands that put options for what ngsgpu adapters found into an array; they are fastp's."""
    fasta, found = (shlex.quote(str(path)) for path in (input.adapters, input.found))
    known = f"--adapter_fasta {fasta}"
    # Overlaps of mates show the few that there may be.
    unknown = ""
    if not input.get("second"):
        known = f'--adapter_sequence "$(sed -n 2p {fasta})" {known}'
        # Else one would be detected, as which everything counts that all reads of an amplicon end in.
        unknown = "--disable_adapter_trimming"
    return (
        f"if [[ -s {fasta} ]]; then options=({known}); else options=({unknown}); fi; "
        f"if grep -q '\"trim_poly_g\": true' {found}; then options+=(--trim_poly_g); fi"
    )


def lanes_folder(output):
    """Where the lanes of a sample are joined while fastp runs."""
    return Path(output.json).parent / "lanes"


def joined_lanes(input, output):
    """By mate, its lanes, and the one file that fastp gets for them; it goes by the ending."""
    for mate, paths in ((1, input.first), (2, input.get("second", []))):
        if paths := listed(paths):
            is_packed = len(paths) == 1 and str(paths[0]).endswith(".gz")
            name = f"R{mate}.fastq{'.gz' if is_packed else ''}"
            yield mate, paths, str(lanes_folder(output) / name)


def join_lanes(wildcards, input, output):
    """Commands that put the lanes of each mate into one file; a link, if that will do.

    The files go when the shell ends.
    """
    folder = shlex.quote(str(lanes_folder(output)))
    commands = [
        f"trap {shlex.quote(f'rm -rf {folder}')} EXIT",
        # By content, as ngsgpu does: names say nothing.
        'plain() { case "$(head -c 3 "$1" | od -An -tx1 | tr -d " ")" in 1f8b*) gzip -dc "$1" ;;'
        ' 425a68) bzip2 -dc "$1" ;; fd377a) xz -dc "$1" ;; *) cat "$1" ;; esac; }',
        f"mkdir -p {folder}",
    ]
    for _, paths, joined in joined_lanes(input, output):
        if joined.endswith(".gz"):
            commands.append(
                f'ln -sf "$(realpath {shlex.quote(paths[0])})" {shlex.quote(joined)}'
            )
        else:
            reads = "; ".join(f"plain {shlex.quote(path)}" for path in paths)
            commands.append(f"{{ {reads}; }} > {shlex.quote(joined)}")
    return " && ".join(commands)


def joined_reads(wildcards, input, output):
    """Options of fastp for the joined lanes."""
    return " ".join(
        f"--in{mate} {shlex.quote(joined)}"
        for mate, _, joined in joined_lanes(input, output)
    )


def checked_samples(names=None):
    """Samples whose reads are checked: none where that is switched off."""
    return list(STUDY if names is None else names) if config["qc"] else []


def checked_reads(wildcards, input):
    """Options for reads to check; adapters of pairs are detected as those of single reads."""
    pairs = " --detect_adapter_for_pe" if input.get("second") else ""
    return f"{arm_reads(wildcards, input)}{pairs}"


def reads_quality(names=None):
    """Figures of samples' reads, before and after correction."""
    return expand(
        "results/{sample}/qc/{arm}.fastp.json",
        sample=sorted(checked_samples(names)),
        arm=ARMS,
    )
