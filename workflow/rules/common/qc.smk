# How fastp gets a sample's reads. Functions only.


def checked_samples(names=None):
    """Samples whose reads are checked: none where that is switched off."""
    return list(STUDY if names is None else names) if config["qc"] else []


def lanes_file(paths, folder, mate):
    """The one file that fastp gets for a mate's lanes; it goes by the ending."""
    is_packed = len(paths) == 1 and str(paths[0]).endswith(".gz")
    return f"{folder}/R{mate}.fastq{'.gz' if is_packed else ''}"


def mates_of(input):
    """The lanes of first mates, or of single-end reads, and of second mates, with their numbers."""
    both = ((1, input.first), (2, input.get("second", [])))
    return [(mate, listed(paths)) for mate, paths in both if listed(paths)]


def join_lanes(wildcards, input, output):
    """Commands that put the lanes of each mate into one file; a link, if that will do."""
    # By content, as ngsgpu does: names say nothing.
    commands = [
        'plain() { case "$(head -c 3 "$1" | od -An -tx1 | tr -d " ")" in 1f8b*) gzip -dc "$1" ;;'
        ' 425a68) bzip2 -dc "$1" ;; fd377a) xz -dc "$1" ;; *) cat "$1" ;; esac; }',
        f"mkdir -p {shlex.quote(output.lanes)}",
    ]
    for mate, paths in mates_of(input):
        joined = lanes_file(paths, output.lanes, mate)
        if joined.endswith(".gz"):
            commands.append(
                f'ln -sf "$(realpath {shlex.quote(paths[0])})" {shlex.quote(joined)}'
            )
        else:
            reads = "; ".join(f"plain {shlex.quote(path)}" for path in paths)
            commands.append(f"{{ {reads}; }} > {shlex.quote(joined)}")
    return " && ".join(commands)


def joined_reads(wildcards, input, output):
    """Options of fastp for the reads."""
    files = [
        (mate, lanes_file(paths, output.lanes, mate)) for mate, paths in mates_of(input)
    ]
    return " ".join(f"--in{mate} {shlex.quote(joined)}" for mate, joined in files)


def fastp_reads(wildcards, input, output):
    """The same; adapters of pairs are looked for as those of single reads."""
    reads = joined_reads(wildcards, input, output)
    return f"{reads} --detect_adapter_for_pe" if len(mates_of(input)) == 2 else reads


def reads_quality(names=None):
    """fastp's figures of samples' reads, before and after correction."""
    return expand(
        "results/{sample}/qc/{arm}.fastp.json",
        sample=sorted(checked_samples(names)),
        arm=ARMS,
    )
