# Trimming by fastp (trim.engine: fastp), with the options that `ngsgpu trim` gets otherwise (trim.smk).
# fastp ends without an error at a damaged record, and at reads that are not FASTQ: hence the count.
#
# The outputs are those of trim.smk, no more: by these Snakemake sees that another rule made them, so
# that a change of the engine is a reason to trim again.

TRIM_BY_FASTP = (
    "{params.guard} {log:q}; : > {log:q}; {params.adapters}; "
    '({params.lanes} && fastp {params.reads} {params.trimmed} "${{options[@]}}"'
    " --disable_quality_filtering --dont_eval_duplication --report_title {wildcards.sample:q}"
    " --thread {threads} --json {output.json:q} --html /dev/null {params.extra}) > {log:q} 2>&1; "
    "expected=$(sed -n 's/^ *\"total\": \\([0-9]*\\).*/\\1/p' {input.found:q}); "
    "count=$(grep -m 1 -o '\"total_reads\": *[0-9]*' {output.json:q} | grep -o '[0-9]*$'); "
    'if [[ $count != "$expected" ]]; then '
    'echo "error: fastp took $count of $expected reads; it reads FASTQ alone: set trim.enabled to false'
    ' for other reads" >> {log:q}; exit 1; fi'
)


rule trim_pairs_by_fastp:
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
        sample=trimmed_by("fastp", PAIRED),
    priority: PRIORITY["trim"]
    retries: RETRIES
    conda:
        "../../../envs/fastp.yaml"
    threads: config["trim"]["threads"]
    resources:
        mem_mb=doubling(config["trim"]["mem_mb"]),
        runtime=minutes_for("trim"),
        gpu=0,
    params:
        guard=guard,
        adapters=adapter_options,
        lanes=join_lanes,
        reads=joined_reads,
        trimmed=trimmed_files,
        extra=config["trim"]["extra"],
    shell:
        TRIM_BY_FASTP


rule trim_single_by_fastp:
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
        sample=trimmed_by("fastp", SINGLE),
    priority: PRIORITY["trim"]
    retries: RETRIES
    conda:
        "../../../envs/fastp.yaml"
    threads: config["trim"]["threads"]
    resources:
        mem_mb=doubling(config["trim"]["mem_mb"]),
        runtime=minutes_for("trim"),
        gpu=0,
    params:
        guard=guard,
        adapters=adapter_options,
        lanes=join_lanes,
        reads=joined_reads,
        trimmed=trimmed_files,
        extra=config["trim"]["extra"],
    shell:
        TRIM_BY_FASTP
