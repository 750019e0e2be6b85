# Real samples whose genome is known: the raw reads are aligned to it once, and what correction and
# merging made of them is judged where they align.


rule index_reference:
    input:
        reference=reference_if_known,
    output:
        index=temp(
            multiext(
                "results/{sample}/evaluate/reference",
                ".amb",
                ".ann",
                ".bwt",
                ".pac",
                ".sa",
                ".sums",
            )
        ),
    log:
        "logs/index_reference/{sample}.log",
    benchmark:
        "results/benchmarks/index_reference/{sample}.tsv"
    wildcard_constraints:
        sample=MAPPABLE,
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["mapped"]["threads"]
    resources:
        mem_mb=doubling(config["mapped"]["mem_mb"]),
        runtime=doubling(config["mapped"]["runtime"]),
        gpu=0,
    params:
        guard=guard,
        prefix=lambda wildcards, output: output.index[0].removesuffix(".amb"),
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu index build {input.reference:q} -o {params.prefix:q} --threads {threads}"
        " --memory {resources.mem_mb}M 2> {log:q}"


rule align_raw_reads:
    input:
        first=raw_first,
        second=raw_second,
        reference=reference_if_known,
        index=index_of_reference,
    output:
        sam=temp("results/{sample}/evaluate/alignments.sam.gz"),
    log:
        "logs/align_raw_reads/{sample}.log",
    benchmark:
        "results/benchmarks/align_raw_reads/{sample}.tsv"
    wildcard_constraints:
        sample=MAPPABLE,
    retries: RETRIES
    conda:
        f"../../envs/{config['mapped']['aligner']}.yaml"
    threads: config["mapped"]["threads"]
    resources:
        mem_mb=doubling(config["mapped"]["mem_mb"]),
        runtime=doubling(config["mapped"]["runtime"]),
        gpu=0,
    params:
        guard=guard,
        commands=align_commands,
    shell:
        "{params.guard} {log:q}; "
        "({params.commands} | gzip -1 > {output.sam:q}) 2> {log:q}"


rule evaluate_mapped:
    input:
        raw_first=raw_first,
        raw_second=raw_second,
        reference=reference_if_known,
        variants=variants_if_known,
        alignments="results/{sample}/evaluate/alignments.sam.gz",
        first=mapped_first,
        second=mapped_second,
        merged=mapped_merged,
    output:
        json="results/{sample}/evaluate/mapped.json",
        table="results/{sample}/evaluate/mapped.txt",
    log:
        "logs/evaluate_mapped/{sample}.log",
    benchmark:
        "results/benchmarks/evaluate_mapped/{sample}.tsv"
    wildcard_constraints:
        sample=MAPPABLE,
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=doubling(config["mapped"]["mem_mb"]),
        runtime=doubling(config["mapped"]["runtime"]),
        gpu=0,
    params:
        guard=guard,
        files=mapped_options,
        extra=config["mapped"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate mapped --reference {input.reference:q} {params.files}"
        " --alignments {input.alignments:q} {params.extra} --json {output.json:q}"
        " > {output.table:q} 2> {log:q}"
