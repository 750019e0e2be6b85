# Quality of the reads before and after correction, by fastp. It writes no reads; what it would trim
# is counted only.


rule check_reads:
    input:
        first=arm_first,
        second=arm_second,
    output:
        json="results/{sample}/qc/{arm}.fastp.json",
        lanes=temp(directory("results/{sample}/qc/{arm}")),
    log:
        "logs/check_reads/{sample}/{arm}.log",
    benchmark:
        "results/benchmarks/check_reads/{sample}/{arm}.tsv"
    retries: RETRIES
    conda:
        "../../envs/fastp.yaml"
    threads: 2
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(120),
        gpu=0,
    params:
        guard=guard,
        lanes=join_lanes,
        reads=fastp_reads,
    shell:
        "{params.guard} {log:q}; "
        "status=0; ({params.lanes} && fastp {params.reads} --report_title {wildcards.sample:q}"
        " --disable_quality_filtering --disable_length_filtering --disable_trim_poly_g"
        " --thread {threads} --json {output.json:q} --html /dev/null) > {log:q} 2>&1 || status=$?; "
        # Reads that fastp cannot take are no failure: what needs them says what is wrong with them.
        "if ((status == 255 || (status > 0 && status < 128))); then "
        'note skipped "fastp: $(last_error)" {output.json:q}; exit 0; fi; exit $status'
