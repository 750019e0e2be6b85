# What correction changed: k-mer spectra and contigs before and after, and, where the truth is
# known, every base.


rule count_kmers:
    input:
        first=arm_first,
        second=arm_second,
    output:
        "results/{sample}/kmers/{arm}.tsv",
    log:
        "logs/count_kmers/{sample}/{arm}.log",
    benchmark:
        "results/benchmarks/count_kmers/{sample}/{arm}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 2
    resources:
        mem_mb=memory_for("correct"),
        runtime=doubling(120),
        gpu=0,
    params:
        guard=guard,
        reads=arm_reads,
        k=config["kmers"]["k"],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu kmers spectrum {params.reads} -k {params.k} --threads {threads} -o {output:q} 2> {log:q}"


rule evaluate_correction:
    input:
        raw_first=raw_first,
        raw_second=raw_second,
        first="results/{sample}/correct/R1.fastq.gz",
        second="results/{sample}/correct/R2.fastq.gz",
        truth="results/{sample}/simulate/truth.sam.gz",
        alignments="results/{sample}/simulate/alignments.sam.gz",
    output:
        json="results/{sample}/evaluate/correction.json",
        table="results/{sample}/evaluate/correction.txt",
        bars="results/{sample}/evaluate/{sample}.ngsgpu_correction_mqc.json",
        columns="results/{sample}/evaluate/{sample}.ngsgpu_correction_generalstats_mqc.json",
    log:
        "logs/evaluate_correction/{sample}.log",
    benchmark:
        "results/benchmarks/evaluate_correction/{sample}.tsv"
    wildcard_constraints:
        sample=one_of(DATASETS),
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=memory_for("correct"),
        runtime=doubling(240),
        gpu=0,
    params:
        guard=guard,
        prefix=lambda wildcards, output: str(
            Path(output.json).parent / wildcards.sample
        ),
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate correction --truth {input.truth:q} --alignments {input.alignments:q}"
        " --in1 {input.raw_first:q} --in2 {input.raw_second:q} --out1 {input.first:q}"
        " --out2 {input.second:q} --json {output.json:q} --mqc-prefix {params.prefix:q}"
        " > {output.table:q} 2> {log:q}"


rule evaluate_assemblies:
    input:
        contigs=arm_contigs(ENGINES[0]),
        reference=reference_if_known,
    output:
        tsv="results/{sample}/quast/report.tsv",
        html=report(
            "results/{sample}/quast/report.html",
            caption="../report/quast.rst",
            category="Assemblies",
            labels={"sample": "{sample}"},
        ),
        multiqc=expand("results/{{sample}}/quast/multiqc/{arm}/report.tsv", arm=ARMS),
        work=directory("results/{sample}/quast/details"),
    log:
        "logs/evaluate_assemblies/{sample}.log",
    benchmark:
        "results/benchmarks/evaluate_assemblies/{sample}.tsv"
    retries: RETRIES
    conda:
        "../../envs/quast.yaml"
    threads: config["quast"]["threads"]
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(240),
        gpu=0,
    params:
        guard=guard,
        labels=",".join(ARMS),
        reference=lambda wildcards, input: repeated("-r", input.reference),
        min_contig=config["quast"]["min_contig"],
        extra=config["quast"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        # QUAST stops where no assembly has a contig that counts; that is a result, not a failure.
        "if ! awk '/^>/ {{n = 0; next}} {{n += length($0)}} n >= {params.min_contig} {{found = 1}}"
        " END {{exit !found}}' {input.contigs:q}; then "
        'note skipped "no contig of at least {params.min_contig} bases for QUAST"'
        " {output.tsv:q} {output.html:q} {output.multiqc:q}; exit 0; fi; "
        # By way of the shell's working directory, since QUAST refuses paths with a space.
        "(quast.py --threads {threads} --labels {params.labels} --min-contig {params.min_contig}"
        " --no-icarus --no-plots {params.reference} {params.extra}"
        " -o $([[ {output.work:q} == /* ]] || echo /proc/$$/cwd/){output.work:q} {input.contigs:q}"
        " && cp {output.work:q}/report.tsv {output.tsv:q}"
        " && cp {output.work:q}/report.html {output.html:q}"
        # MultiQC takes the columns' names as samples, and gets a file for each assembly.
        " && column=1 && for file in {output.multiqc:q}; do column=$((column + 1));"
        " cut -f 1,$column {output.tsv:q} | sed '1s/\t.*/\t{wildcards.sample}/' > \"$file\";"
        " done) > {log:q} 2>&1"
