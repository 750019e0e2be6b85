# Correction of each sample's reads by `ngsgpu correct`, all lanes of a sample together.
#
# Both rules stand alone, since Snakemake cannot import a rule that inherits from another one by
# itself.

CORRECT = (
    "{params.guard} {log:q}; "
    "ngsgpu correct {params.reads} {params.corrected} --threads {threads} {params.backend}"
    "{params.settings} --memory {resources.mem_mb}M --stats {output.stats:q} {params.extra}"
    " 2> {log:q}"
)


rule correct_pairs:
    input:
        first=raw_first,
        second=raw_second,
    output:
        first="results/{sample}/correct/R1.fastq.gz",
        second="results/{sample}/correct/R2.fastq.gz",
        stats="results/{sample}/correct/stats.json",
    log:
        "logs/correct_reads/{sample}.log",
    benchmark:
        "results/benchmarks/correct_reads/{sample}.tsv"
    wildcard_constraints:
        sample=apart("correct", PAIRED),
    priority: PRIORITY["correct"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["correct"]["threads"]
    resources:
        mem_mb=memory_for("correct"),
        runtime=minutes_for("correct"),
        gpu=gpus("correct"),
    params:
        guard=guard,
        reads=arm_reads,
        corrected=lambda wildcards, output: " ".join(
            [repeated("-o", output.first), repeated("-O", output.second)]
        ),
        backend=backend_options,
        settings=correct_settings(),
        extra=extra("correct"),
    shell:
        CORRECT


rule correct_single:
    input:
        first=raw_first,
    output:
        first="results/{sample}/correct/reads.fastq.gz",
        stats="results/{sample}/correct/stats.json",
    log:
        "logs/correct_reads/{sample}.log",
    benchmark:
        "results/benchmarks/correct_reads/{sample}.tsv"
    wildcard_constraints:
        sample=apart("correct", SINGLE),
    priority: PRIORITY["correct"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["correct"]["threads"]
    resources:
        mem_mb=memory_for("correct"),
        runtime=minutes_for("correct"),
        gpu=gpus("correct"),
    params:
        guard=guard,
        reads=arm_reads,
        corrected=lambda wildcards, output: repeated("-o", output.first),
        backend=backend_options,
        settings=correct_settings(),
        extra=extra("correct"),
    shell:
        CORRECT
