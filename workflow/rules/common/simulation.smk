# How a simulated set's description becomes options, seeds and file names. Functions only.


def genome_options(wildcards):
    """Options of synthetic_genome.py for a genome of the config."""
    genome = config["genomes"][wildcards.genome]
    repeats = [
        f"--repeat {family['length']},{family['copies']},{family.get('divergence', 0)}"
        for family in genome.get("repeats", [])
    ]
    gc = genome.get("gc", 0.5)
    return " ".join(
        [f"--length {genome['length']} --seed {genome['seed']} --gc {gc}", *repeats]
    )


def dataset_reference(wildcards):
    """Genome that the set is simulated from."""
    return reference_of(DATASETS[wildcards.dataset])


def simulated(field):
    """Function of the wildcards that looks up one field of the set's description."""
    return lambda wildcards: getattr(DATASETS[wildcards.dataset], field)


def chunk_seed(wildcards):
    """Seed of one chunk; sets with neighbouring seeds share none, up to 10,007 chunks."""
    return (DATASETS[wildcards.dataset].seed * 10007 + int(wildcards.chunk)) % 2**31


def chunk_files(suffix):
    """Function of the wildcards that names one file of each of a set's chunks, in order."""
    return lambda wildcards: expand(
        f"results/{{dataset}}/simulate/{{chunk}}{suffix}",
        dataset=wildcards.dataset,
        chunk=range(DATASETS[wildcards.dataset].chunks),
    )
