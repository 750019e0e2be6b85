# Reads of taxa that the config names under `extract.subsets`, by the calls of each sample.
#
# Both rules stand alone, since Snakemake cannot import a rule that inherits from another one by
# itself.

EXTRACT = (
    "{params.guard} {log:q}; "
    "ngsgpu extract -c {input.calls:q} {params.reads} {params.taxa} --threads {threads}"
    " --stats {output.stats:q} {params.extra} 2> {log:q}"
)


rule extract_pairs:
    input:
        calls="results/{sample}/classify/{database}/{sample}.reads.tsv.gz",
        first=classified_first,
        second=classified_second,
        tree=tree_of,
    output:
        first="results/{sample}/extract/{database}/{subset}/R1.fastq.gz",
        second="results/{sample}/extract/{database}/{subset}/R2.fastq.gz",
        stats="results/{sample}/extract/{database}/{subset}/stats.json",
    log:
        "logs/extract_reads/{database}/{subset}/{sample}.log",
    benchmark:
        "results/benchmarks/extract_reads/{database}/{subset}/{sample}.tsv"
    wildcard_constraints:
        sample=PAIRED,
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["extract"]["threads"]
    resources:
        mem_mb=doubling(config["extract"]["mem_mb"]),
        runtime=minutes_for("extract"),
        gpu=0,
    params:
        guard=guard,
        reads=lambda wildcards, input, output: " ".join(
            [
                repeated("-i", input.first),
                repeated("-I", input.second),
                repeated("-o", output.first),
                repeated("-O", output.second),
            ]
        ),
        taxa=extraction_options,
        extra=config["extract"]["extra"],
    shell:
        EXTRACT


rule extract_single:
    input:
        calls="results/{sample}/classify/{database}/{sample}.reads.tsv.gz",
        first=classified_first,
        tree=tree_of,
    output:
        first="results/{sample}/extract/{database}/{subset}/reads.fastq.gz",
        stats="results/{sample}/extract/{database}/{subset}/stats.json",
    log:
        "logs/extract_reads/{database}/{subset}/{sample}.log",
    benchmark:
        "results/benchmarks/extract_reads/{database}/{subset}/{sample}.tsv"
    wildcard_constraints:
        sample=SINGLE,
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["extract"]["threads"]
    resources:
        mem_mb=doubling(config["extract"]["mem_mb"]),
        runtime=minutes_for("extract"),
        gpu=0,
    params:
        guard=guard,
        reads=lambda wildcards, input, output: " ".join(
            [repeated("-i", input.first), repeated("-o", output.first)]
        ),
        taxa=extraction_options,
        extra=config["extract"]["extra"],
    shell:
        EXTRACT
