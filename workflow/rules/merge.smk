# Merging of overlapping pairs by `ngsgpu merge`, before or after correction as the config says.


rule merge_pairs:
    input:
        first=merged_arm_first,
        second=merged_arm_second,
    output:
        merged="results/{sample}/merge/merged.fastq.gz",
        first="results/{sample}/merge/unmerged_R1.fastq.gz",
        second="results/{sample}/merge/unmerged_R2.fastq.gz",
        inserts="results/{sample}/merge/inserts.txt",
        stats="results/{sample}/merge/stats.json",
    log:
        "logs/merge_pairs/{sample}.log",
    benchmark:
        "results/benchmarks/merge_pairs/{sample}.tsv"
    wildcard_constraints:
        sample=apart("merge", PAIRED),
    priority: PRIORITY["merge"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["merge"]["threads"]
    resources:
        mem_mb=memory_for("merge"),
        runtime=minutes_for("merge"),
        gpu=gpus("merge"),
    params:
        guard=guard,
        reads=arm_reads,
        backend=backend_options,
        overlap="--flash " if config["merge"]["overlap"] == "flash" else "",
        extra=extra("merge"),
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu merge {params.reads} -o {output.merged:q} --unmerged1 {output.first:q}"
        " --unmerged2 {output.second:q} --threads {threads} {params.backend}"
        " {params.overlap}--ihist {output.inserts:q} --stats {output.stats:q} {params.extra} 2> {log:q}"


rule evaluate_merging:
    input:
        first=merged_arm_first,
        second=merged_arm_second,
        merged="results/{sample}/merge/merged.fastq.gz",
        truth="results/{sample}/simulate/truth.sam.gz",
    output:
        json="results/{sample}/evaluate/merging.json",
        table="results/{sample}/evaluate/merging.txt",
    log:
        "logs/evaluate_merging/{sample}.log",
    benchmark:
        "results/benchmarks/evaluate_merging/{sample}.tsv"
    wildcard_constraints:
        sample=one_of(DATASETS),
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=memory_for("merge"),
        runtime=doubling(240),
        gpu=0,
    params:
        guard=guard,
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate merging --truth {input.truth:q} --in1 {input.first:q} --in2 {input.second:q}"
        " --merged {input.merged:q} --json {output.json:q} > {output.table:q} 2> {log:q}"
