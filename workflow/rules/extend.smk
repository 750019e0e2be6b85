# Extension of pairs to long reads by `ngsgpu extend` (by Konnector: peers/konnector.smk); the
# assemblies of both beside those of the reads as they were.


rule extend_pairs:
    input:
        first=extended_arm_first,
        second=extended_arm_second,
    output:
        extended="results/{sample}/extend/ngsgpu/extended.fastq.gz",
        first="results/{sample}/extend/ngsgpu/remaining_R1.fastq.gz",
        second="results/{sample}/extend/ngsgpu/remaining_R2.fastq.gz",
        stats="results/{sample}/extend/stats.json",
    log:
        "logs/extend_pairs/{sample}.log",
    benchmark:
        "results/benchmarks/extend_pairs/{sample}.tsv"
    wildcard_constraints:
        sample=apart("extend", PAIRED),
    priority: PRIORITY["extend"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["extend"]["threads"]
    resources:
        mem_mb=memory_for("extend"),
        runtime=minutes_for("extend"),
        gpu=gpus("extend"),
    params:
        guard=guard,
        reads=arm_reads,
        backend=backend_options,
        extra=extra("extend"),
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu extend {params.reads} -o {output.extended:q} --remaining1 {output.first:q}"
        " --remaining2 {output.second:q} --threads {threads} {params.backend}"
        " --memory {resources.mem_mb}M --stats {output.stats:q} {params.extra} 2> {log:q}"


rule evaluate_extension:
    input:
        extended="results/{sample}/extend/{program}/extended.fastq.gz",
        truth="results/{sample}/simulate/truth.sam.gz",
        reference=reference_if_known,
    output:
        json="results/{sample}/evaluate/extension_{program}.json",
        table="results/{sample}/evaluate/extension_{program}.txt",
    log:
        "logs/evaluate_extension/{sample}/{program}.log",
    benchmark:
        "results/benchmarks/evaluate_extension/{sample}/{program}.tsv"
    wildcard_constraints:
        sample=one_of(DATASETS),
        program="ngsgpu|konnector",
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=memory_for("extend"),
        runtime=doubling(240),
        gpu=0,
    params:
        guard=guard,
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate extension --truth {input.truth:q} --reference {input.reference:q}"
        " --extended {input.extended:q} --json {output.json:q} > {output.table:q} 2> {log:q}"


rule assemble_extended:
    input:
        extended="results/{sample}/extend/{program}/extended.fastq.gz",
        first="results/{sample}/extend/{program}/remaining_R1.fastq.gz",
        second="results/{sample}/extend/{program}/remaining_R2.fastq.gz",
    output:
        contigs="results/{sample}/assembly/{program}_{use}/contigs.fasta",
        work=temp(directory("results/{sample}/assembly/{program}_{use}/spades")),
    log:
        "logs/assemble_extended/{sample}/{program}_{use}.log",
    benchmark:
        "results/benchmarks/assemble_extended/{sample}/{program}_{use}.tsv"
    wildcard_constraints:
        program="ngsgpu|konnector",
        use=one_of(SPADES_OPTIONS),
    retries: RETRIES
    conda:
        "../../envs/spades.yaml"
    threads: config["assemble"]["threads"]
    resources:
        mem_mb=memory_for("assemble"),
        runtime=minutes_for("assemble"),
        gpu=0,
    params:
        guard=guard_reads,
        option=lambda wildcards: SPADES_OPTIONS[wildcards.use],
        # Not {threads}: Snakemake may grant fewer, and the contigs must not depend on that.
        threads=config["assemble"]["threads"],
        kmers=config["assemble"]["kmers"],
        extra=config["assemble"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        "(spades.py --only-assembler -1 {input.first:q} -2 {input.second:q}"
        " {params.option} {input.extended:q} -k {params.kmers} --threads {params.threads}"
        " --memory $(({resources.mem_mb} / 1024)) {params.extra} -o {output.work:q}"
        " && touch {output.work:q}/contigs.fasta"
        " && cp {output.work:q}/contigs.fasta {output.contigs:q}) > {log:q} 2>&1"


use rule evaluate_assemblies as evaluate_extended_assemblies with:
    input:
        contigs=lambda wildcards: expand(
            "results/{sample}/assembly/{arm}/contigs.fasta",
            sample=wildcards.sample,
            arm=[*ARMS, *extended_uses()],
        ),
        reference=reference_if_known,
    output:
        tsv="results/{sample}/quast_extended/report.tsv",
        html=report(
            "results/{sample}/quast_extended/report.html",
            caption="../report/quast.rst",
            category="Assemblies of extended reads",
            labels={"sample": "{sample}"},
        ),
        multiqc=expand(
            "results/{{sample}}/quast_extended/multiqc/{arm}/report.tsv",
            arm=[*ARMS, *extended_uses()],
        ),
        work=directory("results/{sample}/quast_extended/details"),
    log:
        "logs/evaluate_extended_assemblies/{sample}.log",
    benchmark:
        "results/benchmarks/evaluate_extended_assemblies/{sample}.tsv"
    params:
        labels=lambda wildcards: ",".join([*ARMS, *extended_uses()]),
        reference=lambda wildcards, input: repeated("-r", input.reference),
        min_contig=config["quast"]["min_contig"],
        extra=config["quast"]["extra"],
