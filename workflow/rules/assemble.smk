# Assembly of the reads before and after correction, with SPAdes' own correction switched off.


rule assemble_reads:
    input:
        first=arm_first,
        second=arm_second,
    output:
        contigs="results/{sample}/assembly/{arm}/contigs.fasta",
        scaffolds="results/{sample}/assembly/{arm}/scaffolds.fasta",
        graph="results/{sample}/assembly/{arm}/graph.gfa",
        work=temp(directory("results/{sample}/assembly/{arm}/spades")),
        links=temp(directory("results/{sample}/assembly/{arm}/reads")),
    log:
        "logs/assemble_reads/{sample}/{arm}.log",
    benchmark:
        "results/benchmarks/assemble_reads/{sample}/{arm}.tsv"
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
        links=link_reads,
        reads=spades_reads,
        # Not {threads}: Snakemake may grant fewer, and the contigs must not depend on that.
        threads=config["assemble"]["threads"],
        kmers=config["assemble"]["kmers"],
        extra=config["assemble"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        "({params.links} && spades.py --only-assembler {params.reads} -k {params.kmers} --threads {params.threads}"
        " --memory $(({resources.mem_mb} / 1024)) {params.extra} -o {output.work:q}"
        # SPAdes leaves out what is empty; an assembly without contigs is a result all the same.
        " && touch {output.work:q}/{{contigs,scaffolds}}.fasta"
        " {output.work:q}/assembly_graph_with_scaffolds.gfa"
        " && cp {output.work:q}/contigs.fasta {output.contigs:q}"
        " && cp {output.work:q}/scaffolds.fasta {output.scaffolds:q}"
        " && cp {output.work:q}/assembly_graph_with_scaffolds.gfa {output.graph:q}) > {log:q} 2>&1"
