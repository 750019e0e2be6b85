# Reads of runs in the Sequence Read Archive, which a sheet names as sra:ACCESSION: fetched by sra-tools
# where there is a network, and removed once nothing needs them any more.


localrules:
    fetch_pairs,
    fetch_single,


rule fetch_pairs:
    input:
        script=script_file("fetch_run.py"),
    output:
        first=temp(f"{FETCHED}/{{accession}}_1.fastq.gz"),
        second=temp(f"{FETCHED}/{{accession}}_2.fastq.gz"),
    log:
        "logs/fetch_pairs/{accession}.log",
    benchmark:
        "results/benchmarks/fetch_pairs/{accession}.tsv"
    conda:
        "../../envs/sra.yaml"
    threads: 4
    resources:
        mem_mb=4000,
        runtime=720,
        gpu=0,
    shell:
        "python {input.script:q} {wildcards.accession} {output.first:q} {output.second:q}"
        " --threads {threads} > {log:q} 2>&1"


rule fetch_single:
    input:
        script=script_file("fetch_run.py"),
    output:
        reads=temp(f"{FETCHED}/{{accession}}.fastq.gz"),
    log:
        "logs/fetch_single/{accession}.log",
    benchmark:
        "results/benchmarks/fetch_single/{accession}.tsv"
    conda:
        "../../envs/sra.yaml"
    threads: 4
    resources:
        mem_mb=4000,
        runtime=720,
        gpu=0,
    shell:
        "python {input.script:q} {wildcards.accession} {output.reads:q}"
        " --threads {threads} > {log:q} 2>&1"
