# Reads whose truth is known: synthetic genomes, and reads drawn by ART from chunks of a reference,
# side by side. The number of chunks is part of a set's description: it decides the reads, the
# number of cores does not.


localrules:
    fetch_demo_reads,


rule fetch_demo_reads:
    input:
        script=script_file("fetch_demo_reads.py"),
    output:
        reads=expand(f"{DEMO_READS}/reads{{mate}}.fastq.gz", mate=[1, 2]),
        reference=f"{DEMO_READS}/reference.fasta.gz",
    log:
        "logs/fetch_demo_reads.log",
    benchmark:
        "results/benchmarks/fetch_demo_reads.tsv"
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=30,
        gpu=0,
    params:
        directory=lambda wildcards, output: Path(output.reference).parent,
    shell:
        "python {input.script:q} {params.directory:q} > {log:q} 2>&1"


rule make_genome:
    input:
        script=script_file("synthetic_genome.py"),
    output:
        fasta="results/genomes/{genome}.fasta",
        repeats="results/genomes/{genome}.repeats.bed",
    log:
        "logs/make_genome/{genome}.log",
    benchmark:
        "results/benchmarks/make_genome/{genome}.tsv"
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards: 500
        + 40 * config["genomes"][wildcards.genome]["length"] // 10**6,
        runtime=30,
        gpu=0,
    params:
        options=genome_options,
    shell:
        "python {input.script:q} {params.options} --name {wildcards.genome}"
        " --bed {output.repeats:q} {output.fasta:q} 2> {log:q}"


rule cut_reference:
    input:
        script=script_file("simulation_chunks.py"),
        reference=dataset_reference,
    output:
        temp(directory("results/{dataset}/simulate/chunks")),
    log:
        "logs/cut_reference/{dataset}.log",
    benchmark:
        "results/benchmarks/cut_reference/{dataset}.tsv"
    retries: RETRIES
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(60),
        gpu=0,
    params:
        guard=guard,
        chunks=simulated("chunks"),
        fragment=simulated("insert_mean"),
    shell:
        "{params.guard} {log:q}; "
        "python {input.script:q} cut --chunks {params.chunks} --fragment {params.fragment}"
        " {input.reference:q} {output:q} 2> {log:q}"


rule simulate_reads:
    input:
        "results/{dataset}/simulate/chunks",
    output:
        first=temp("results/{dataset}/simulate/{chunk}_R1.fq.gz"),
        second=temp("results/{dataset}/simulate/{chunk}_R2.fq.gz"),
        truth=temp("results/{dataset}/simulate/{chunk}_truth.sam"),
        alignments=temp("results/{dataset}/simulate/{chunk}_alignments.sam"),
        work=temp(directory("results/{dataset}/simulate/{chunk}_art")),
    log:
        "logs/simulate_reads/{dataset}/{chunk}.log",
    benchmark:
        "results/benchmarks/simulate_reads/{dataset}/{chunk}.tsv"
    retries: RETRIES
    conda:
        "../../envs/art.yaml"
    threads: 1
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(120),
        gpu=0,
    params:
        guard=guard,
        profile=simulated("art_profile"),
        length=simulated("read_length"),
        coverage=simulated("coverage"),
        fragment=simulated("insert_mean"),
        deviation=simulated("insert_sd"),
        seed=chunk_seed,
    shell:
        # ART writes beside its prefix, under names that it chooses, and plain text only.
        "{params.guard} {log:q}; "
        "(mkdir -p {output.work:q}"
        " && art_illumina -q -na -ef -p -ss {params.profile} -l {params.length}"
        " -f {params.coverage} -m {params.fragment} -s {params.deviation} -rs {params.seed}"
        " -i {input:q}/{wildcards.chunk}.fasta -o {output.work:q}/R"
        " && gzip -n -1 -c {output.work:q}/R1.fq > {output.first:q}"
        " && gzip -n -1 -c {output.work:q}/R2.fq > {output.second:q}"
        " && mv {output.work:q}/R_errFree.sam {output.truth:q}"
        " && mv {output.work:q}/R.sam {output.alignments:q}) > {log:q} 2>&1"


rule join_reads:
    input:
        first=chunk_files("_R1.fq.gz"),
        second=chunk_files("_R2.fq.gz"),
    output:
        first="results/{dataset}/simulate/R1.fastq.gz",
        second="results/{dataset}/simulate/R2.fastq.gz",
    log:
        "logs/join_reads/{dataset}.log",
    benchmark:
        "results/benchmarks/join_reads/{dataset}.tsv"
    retries: RETRIES
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=doubling(500),
        runtime=doubling(60),
        gpu=0,
    params:
        guard=guard,
    shell:
        # A gzip file may have several members: joining the chunks needs no recompression.
        "{params.guard} {log:q}; "
        "(cat {input.first:q} > {output.first:q} && cat {input.second:q} > {output.second:q}) 2> {log:q}"


rule join_truth:
    input:
        script=script_file("simulation_chunks.py"),
        reference=dataset_reference,
        chunks=lambda wildcards: chunk_files(f"_{wildcards.kind}.sam")(wildcards),
    output:
        "results/{dataset}/simulate/{kind}.sam.gz",
    log:
        "logs/join_truth/{dataset}/{kind}.log",
    benchmark:
        "results/benchmarks/join_truth/{dataset}/{kind}.tsv"
    wildcard_constraints:
        kind="truth|alignments",
    retries: RETRIES
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(240),
        gpu=0,
    params:
        guard=guard,
    shell:
        "{params.guard} {log:q}; "
        "python {input.script:q} join --output {output:q} {input.reference:q} {input.chunks:q} 2> {log:q}"
