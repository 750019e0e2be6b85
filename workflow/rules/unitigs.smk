# The compacted de Bruijn graph of the reads before and after correction.


rule build_unitigs:
    input:
        first=arm_first,
        second=arm_second,
    output:
        graph="results/{sample}/unitigs/{arm}/graph.gfa",
        stats="results/{sample}/unitigs/{arm}/stats.json",
    log:
        "logs/build_unitigs/{sample}/{arm}.log",
    benchmark:
        "results/benchmarks/build_unitigs/{sample}/{arm}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["unitigs"]["threads"]
    resources:
        mem_mb=memory_for("unitigs"),
        runtime=minutes_for("unitigs"),
        gpu=gpus("unitigs"),
    params:
        guard=guard,
        reads=arm_reads,
        k=config["unitigs"]["k"],
        least=config["unitigs"]["min_abundance"],
        backend=backend_options,
        extra=config["unitigs"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu unitigs {params.reads} -k {params.k} --min-abundance {params.least}"
        " --gfa {output.graph:q} --stats {output.stats:q} --threads {threads}"
        " {params.backend} --memory {resources.mem_mb}M {params.extra} 2> {log:q}"
