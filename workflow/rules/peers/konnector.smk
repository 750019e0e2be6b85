# Connection of pairs by Konnector (ABySS), if the config wants it beside `ngsgpu extend`.


rule connect_pairs:
    input:
        first=extended_arm_first,
        second=extended_arm_second,
        stats="results/{sample}/extend/stats.json",
    output:
        extended="results/{sample}/extend/konnector/extended.fastq.gz",
        first="results/{sample}/extend/konnector/remaining_R1.fastq.gz",
        second="results/{sample}/extend/konnector/remaining_R2.fastq.gz",
        work=temp(directory("results/{sample}/extend/konnector/work")),
    log:
        "logs/connect_pairs/{sample}.log",
    benchmark:
        "results/benchmarks/connect_pairs/{sample}.tsv"
    wildcard_constraints:
        sample=PAIRED,
    retries: RETRIES
    conda:
        "../../../envs/abyss.yaml"
    threads: config["extend"]["threads"]
    resources:
        mem_mb=memory_for("extend"),
        runtime=minutes_for("extend"),
        gpu=0,
    params:
        guard=guard_reads,
        options=config["extend"]["konnector_options"],
    shell:
        # Debian keeps ABySS' programs out of the PATH. Both programs get the same lengths: the
        # first ones that the statistics name.
        "{params.guard} {log:q}; "
        "(export PATH=$PATH:/usr/lib/abyss && mkdir -p {output.work:q}"
        " && length() {{ grep -o -m 1 \"$1.: [0-9][0-9]*\" {input.stats:q} | grep -o '[0-9]*$'; }}"
        " && konnector {params.options} --fastq -j {threads} -f $(length min_length)"
        " -F $(length max_length) -o {output.work:q}/k {input.first:q} {input.second:q}"
        " && gzip -n -1 -c {output.work:q}/k_pseudoreads.fq > {output.extended:q}"
        " && gzip -n -1 -c {output.work:q}/k_reads_1.fq > {output.first:q}"
        " && gzip -n -1 -c {output.work:q}/k_reads_2.fq > {output.second:q}) > {log:q} 2>&1"
