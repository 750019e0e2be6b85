# Quality of the reads before and after correction, by `ngsgpu trim`. It writes no reads; what it would
# trim is counted only.


rule check_reads:
    input:
        first=arm_first,
        second=arm_second,
    output:
        json="results/{sample}/qc/{arm}.fastp.json",
    log:
        "logs/check_reads/{sample}/{arm}.log",
    benchmark:
        "results/benchmarks/check_reads/{sample}/{arm}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 2
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(120),
        gpu=0,
    params:
        guard=guard,
        reads=checked_reads,
    shell:
        "{params.guard} {log:q}; "
        "status=0; ngsgpu trim {params.reads} --report_title {wildcards.sample:q}"
        " --disable_quality_filtering --disable_length_filtering --disable_trim_poly_g"
        " --json {output.json:q} --threads {threads} --backend cpu 2> {log:q} || status=$?; "
        # Reads without qualities are no failure: what cannot take others says what is wrong with them.
        'if ((status == 2)); then note skipped "$(last_error)" {output.json:q}; exit 0; fi; exit $status'
