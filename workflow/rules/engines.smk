# Assembly of the same reads by other programs than SPAdes, and QUAST's comparison of all of them.


rule assemble_ngsgpu:
    input:
        first=arm_first,
        second=arm_second,
    output:
        contigs="results/{sample}/assembly/ngsgpu/{arm}/contigs.fasta",
        graph="results/{sample}/assembly/ngsgpu/{arm}/graph.gfa",
        stats="results/{sample}/assembly/ngsgpu/{arm}/stats.json",
    log:
        "logs/assemble_ngsgpu/{sample}/{arm}.log",
    benchmark:
        "results/benchmarks/assemble_ngsgpu/{sample}/{arm}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["assemble"]["threads"]
    resources:
        mem_mb=memory_for("assemble"),
        runtime=minutes_for("assemble"),
        gpu=gpus("assemble"),
    params:
        guard=guard,
        reads=arm_reads,
        backend=backend_options,
        extra=config["assemble"]["ngsgpu_extra"],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu assemble {params.reads} -o {output.contigs:q} --gfa {output.graph:q}"
        " --stats {output.stats:q} --threads {threads} {params.backend}"
        " --memory {resources.mem_mb}M {params.extra} 2> {log:q}"


rule assemble_skesa:
    input:
        first=arm_first,
        second=arm_second,
    output:
        contigs="results/{sample}/assembly/skesa/{arm}/contigs.fasta",
        links=temp(directory("results/{sample}/assembly/skesa/{arm}/reads")),
    log:
        "logs/assemble_skesa/{sample}/{arm}.log",
    benchmark:
        "results/benchmarks/assemble_skesa/{sample}/{arm}.tsv"
    retries: RETRIES
    conda:
        "../../envs/skesa.yaml"
    threads: config["assemble"]["threads"]
    resources:
        mem_mb=memory_for("assemble"),
        runtime=minutes_for("assemble"),
        gpu=0,
    params:
        guard=guard_reads,
        links=link_reads,
        reads=skesa_reads,
        # Not {threads}: Snakemake may grant fewer, and the contigs must not depend on that.
        threads=config["assemble"]["threads"],
        extra=config["assemble"]["skesa_extra"],
    shell:
        "{params.guard} {log:q}; "
        "({params.links} && skesa {params.reads} --cores {params.threads}"
        " --memory $(({resources.mem_mb} / 1024)) {params.extra} --contigs_out {output.contigs:q})"
        " > {log:q} 2>&1"


rule assemble_megahit:
    input:
        first=arm_first,
        second=arm_second,
    output:
        contigs="results/{sample}/assembly/megahit/{arm}/contigs.fasta",
        work=temp(directory("results/{sample}/assembly/megahit/{arm}/megahit")),
        links=temp(directory("results/{sample}/assembly/megahit/{arm}/reads")),
    log:
        "logs/assemble_megahit/{sample}/{arm}.log",
    benchmark:
        "results/benchmarks/assemble_megahit/{sample}/{arm}.tsv"
    retries: RETRIES
    conda:
        "../../envs/megahit.yaml"
    threads: config["assemble"]["threads"]
    resources:
        mem_mb=memory_for("assemble"),
        runtime=minutes_for("assemble"),
        gpu=0,
    params:
        guard=guard_reads,
        links=link_reads,
        reads=megahit_reads,
        # Not {threads}: Snakemake may grant fewer, and the contigs must not depend on that.
        threads=config["assemble"]["threads"],
        extra=config["assemble"]["megahit_extra"],
    shell:
        "{params.guard} {log:q}; "
        # MEGAHIT wants to make its folder itself, and leaves it behind when it fails.
        "(rm -rf {output.work:q}/out && {params.links} && megahit {params.reads}"
        " --num-cpu-threads {params.threads} --memory $(({resources.mem_mb} * 1048576))"
        " {params.extra} -o {output.work:q}/out"
        " && cp {output.work:q}/out/final.contigs.fa {output.contigs:q}) > {log:q} 2>&1"


use rule evaluate_assemblies as evaluate_engines with:
    input:
        contigs=engine_contigs(),
        reference=reference_if_known,
    output:
        tsv="results/{sample}/quast_engines/report.tsv",
        html=report(
            "results/{sample}/quast_engines/report.html",
            caption="../report/quast.rst",
            category="Assemblies by several programs",
            labels={"sample": "{sample}"},
        ),
        multiqc=expand(
            "results/{{sample}}/quast_engines/multiqc/{arm}/report.tsv",
            arm=engine_labels(),
        ),
        work=directory("results/{sample}/quast_engines/details"),
    log:
        "logs/evaluate_engines/{sample}.log",
    benchmark:
        "results/benchmarks/evaluate_engines/{sample}.tsv"
    params:
        labels=",".join(engine_labels()),
        reference=lambda wildcards, input: repeated("-r", input.reference),
        min_contig=config["quast"]["min_contig"],
        extra=config["quast"]["extra"],
