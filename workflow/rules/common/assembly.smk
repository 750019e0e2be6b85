# Which programs assemble, what their reads are, and where their contigs are. Functions and constants
# only.

SPADES = "spades"
# What the config names; the first one is shown before and after correction, all are compared.
ENGINES = listed(config["assemble"]["engine"])
RULE_OF_ENGINE = {SPADES: "assemble_reads"} | {
    engine: f"assemble_{engine}" for engine in ("ngsgpu", "skesa", "megahit")
}


def check_engines():
    """Refuse a config that compares extended reads with assemblies that are not made.

    Raises:
        WorkflowError: extended reads are to be assembled, which SPAdes does, without SPAdes.
    """
    if config["extend"]["assemble"] and SPADES not in ENGINES:
        raise WorkflowError(
            "extend.assemble takes SPAdes, but assemble.engine does not name it; add 'spades' to "
            "assemble.engine or set extend.assemble to []"
        )


check_engines()


def assembly_folder(engine, arm):
    """Folder of an assembly within a sample's: that of SPAdes has the name of the arm alone."""
    return f"assembly/{arm}" if engine == SPADES else f"assembly/{engine}/{arm}"


def arm_contigs(engine):
    """Contigs of an engine, of each arm, by the wildcard of the sample."""
    return [
        f"results/{{sample}}/{assembly_folder(engine, arm)}/contigs.fasta"
        for arm in ARMS
    ]


def engine_contigs():
    """Contigs of all engines, in the order of ``engine_labels``."""
    return [path for engine in ENGINES for path in arm_contigs(engine)]


def engine_labels():
    """What QUAST calls the assemblies of several engines."""
    return [f"{engine}_{arm}" for engine in ENGINES for arm in ARMS]


def engines_compared(names):
    """The samples on which QUAST compares several engines."""
    return compared_samples(names) if len(ENGINES) > 1 else []


def lanes(input, links):
    """The files of one arm lane by lane: of both mates, or one; links where a name needs it."""
    first, second = (
        [linked(str(path), links) for path in listed(reads)]
        for reads in (input.first, input.get("second", []))
    )
    return list(zip(first, second)) if second else list(zip(first))


def skesa_reads(wildcards, input, output):
    """Options of skesa for the reads of one arm: a run a lane."""
    return repeated("--reads", [",".join(lane) for lane in lanes(input, output.links)])


def megahit_reads(wildcards, input, output):
    """Options of megahit for the reads of one arm."""
    mates = [",".join(files) for files in zip(*lanes(input, output.links))]
    options = ["-r"] if len(mates) == 1 else ["-1", "-2"]
    return " ".join(repeated(*pair) for pair in zip(options, mates))
