# Depletion of real samples by `ngsgpu deplete`, before all but trimming, if the config names a host.
#
# Both rules stand alone, since Snakemake cannot import a rule that inherits from another one by
# itself.

DEPLETE = (
    "{params.guard} {log:q}; "
    "ngsgpu deplete -d {input.host:q} {params.reads} {params.kept} --threads {threads}"
    " {params.backend} --stats {output.stats:q} {params.extra} 2> {log:q}"
)


rule index_host:
    input:
        HOST,
    output:
        HOST_INDEX,
    log:
        "logs/index_host.log",
    benchmark:
        "results/benchmarks/index_host.tsv"
    priority: PRIORITY["deplete"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["deplete"]["threads"]
    resources:
        mem_mb=index_memory,
        runtime=doubling(config["deplete"]["runtime"]),
        gpu=0,
    params:
        guard=guard,
        extra=config["deplete"]["index_extra"],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu deplete-index {input:q} -o {output:q} --threads {threads}"
        " --memory {resources.mem_mb}M {params.extra} 2> {log:q}"


rule deplete_pairs:
    input:
        first=trimmed_first,
        second=trimmed_second,
        host=host_index,
    output:
        first="results/{sample}/deplete/R1.fastq.gz",
        second="results/{sample}/deplete/R2.fastq.gz",
        stats="results/{sample}/deplete/stats.json",
    log:
        "logs/deplete_reads/{sample}.log",
    benchmark:
        "results/benchmarks/deplete_reads/{sample}.tsv"
    wildcard_constraints:
        sample=apart("deplete", PAIRED),
    priority: PRIORITY["deplete"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["deplete"]["threads"]
    resources:
        mem_mb=depletion_memory,
        runtime=minutes_for("deplete"),
        gpu=gpus("deplete"),
    params:
        guard=guard,
        reads=arm_reads,
        kept=lambda wildcards, output: " ".join(
            [repeated("-o", output.first), repeated("-O", output.second)]
        ),
        backend=backend_options,
        extra=config["deplete"]["extra"],
    shell:
        DEPLETE


rule deplete_single:
    input:
        first=trimmed_first,
        host=host_index,
    output:
        first="results/{sample}/deplete/reads.fastq.gz",
        stats="results/{sample}/deplete/stats.json",
    log:
        "logs/deplete_reads/{sample}.log",
    benchmark:
        "results/benchmarks/deplete_reads/{sample}.tsv"
    wildcard_constraints:
        sample=apart("deplete", SINGLE),
    priority: PRIORITY["deplete"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["deplete"]["threads"]
    resources:
        mem_mb=depletion_memory,
        runtime=minutes_for("deplete"),
        gpu=gpus("deplete"),
    params:
        guard=guard,
        reads=arm_reads,
        kept=lambda wildcards, output: repeated("-o", output.first),
        backend=backend_options,
        extra=config["deplete"]["extra"],
    shell:
        DEPLETE
