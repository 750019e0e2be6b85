# Adapters of real samples are trimmed before everything else, since correction takes them for reads of
# one place (docs/adapters.md): by `ngsgpu trim`, or by fastp (rules/peers/fastp.smk), with the same
# options and the same results. `ngsgpu adapters` reads the samples first, finds the adapters, and says
# what is wrong with a damaged file.
#
# Both rules stand alone, since Snakemake cannot import a rule that inherits from another one by itself.

TRIM = (
    "{params.guard} {log:q}; {params.adapters}; "
    'ngsgpu trim {params.reads} {params.trimmed} "${{options[@]}}"'
    " --disable_quality_filtering --dont_eval_duplication --report_title {wildcards.sample:q}"
    " --json {output.json:q} --threads {threads} {params.backend} {params.extra} 2> {log:q}"
    # No read was left, as of a blank that is adapters alone; the log says so.
    " || [ $? -eq 4 ]"
)


rule find_adapters:
    input:
        first=sequenced_first,
        second=sequenced_second,
    output:
        found="results/{sample}/trim/adapters.json",
        adapters="results/{sample}/trim/adapters.fasta",
    log:
        "logs/find_adapters/{sample}.log",
    benchmark:
        "results/benchmarks/find_adapters/{sample}.tsv"
    priority: PRIORITY["trim"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 2
    resources:
        mem_mb=doubling(2000),
        runtime=minutes_for("trim"),
        gpu=0,
    params:
        guard=guard,
        reads=arm_reads,
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu adapters {params.reads} --stats {output.found:q} --fasta {output.adapters:q}"
        " --threads {threads} --memory {resources.mem_mb}M 2> {log:q}"


rule trim_pairs:
    input:
        first=sequenced_first,
        second=sequenced_second,
        found="results/{sample}/trim/adapters.json",
        adapters="results/{sample}/trim/adapters.fasta",
    output:
        first="results/{sample}/trim/R1.fastq.gz",
        second="results/{sample}/trim/R2.fastq.gz",
        json="results/{sample}/trim/fastp.json",
    log:
        "logs/trim_reads/{sample}.log",
    benchmark:
        "results/benchmarks/trim_reads/{sample}.tsv"
    wildcard_constraints:
        sample=trimmed_by("ngsgpu", PAIRED),
    priority: PRIORITY["trim"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["trim"]["threads"]
    resources:
        mem_mb=doubling(config["trim"]["mem_mb"]),
        runtime=minutes_for("trim"),
        gpu=gpus("trim"),
    params:
        guard=guard,
        adapters=adapter_options,
        reads=arm_reads,
        trimmed=trimmed_files,
        backend=backend_options,
        extra=config["trim"]["extra"],
    shell:
        TRIM


rule trim_single:
    input:
        first=sequenced_first,
        found="results/{sample}/trim/adapters.json",
        adapters="results/{sample}/trim/adapters.fasta",
    output:
        first="results/{sample}/trim/reads.fastq.gz",
        json="results/{sample}/trim/fastp.json",
    log:
        "logs/trim_reads/{sample}.log",
    benchmark:
        "results/benchmarks/trim_reads/{sample}.tsv"
    wildcard_constraints:
        sample=trimmed_by("ngsgpu", SINGLE),
    priority: PRIORITY["trim"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["trim"]["threads"]
    resources:
        mem_mb=doubling(config["trim"]["mem_mb"]),
        runtime=minutes_for("trim"),
        gpu=gpus("trim"),
    params:
        guard=guard,
        adapters=adapter_options,
        reads=arm_reads,
        trimmed=trimmed_files,
        backend=backend_options,
        extra=config["trim"]["extra"],
    shell:
        TRIM
