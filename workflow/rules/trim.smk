# Adapters of real samples are trimmed by fastp before everything else, since correction takes them for
# reads of one place (docs/adapters.md). `ngsgpu adapters` reads the samples first: it says what is wrong
# with a damaged file, at which fastp ends without an error, and finds the adapters.
#
# Both rules of fastp stand alone, since Snakemake cannot import a rule that inherits from another one by
# itself.

TRIM = (
    "{params.guard} {log:q}; : > {log:q}; options=(); "
    "if [[ -s {input.adapters:q} ]]; then options+=({params.known}); else options+=({params.unknown}); fi; "
    "if grep -q '\"trim_poly_g\": true' {input.found:q}; then options+=(--trim_poly_g); fi; "
    '({params.lanes} && fastp {params.reads} {params.trimmed} "${{options[@]}}"'
    " --disable_quality_filtering --dont_eval_duplication --report_title {wildcards.sample:q}"
    " --thread {threads} --json {output.json:q} --html /dev/null {params.extra}) > {log:q} 2>&1; "
    "expected=$(sed -n 's/^ *\"total\": \\([0-9]*\\).*/\\1/p' {input.found:q}); "
    "count=$(grep -m 1 -o '\"total_reads\": *[0-9]*' {output.json:q} | grep -o '[0-9]*$'); "
    'if [[ $count != "$expected" ]]; then '
    'echo "error: fastp took $count of $expected reads; it reads FASTQ alone: set trim.enabled to false'
    ' for other reads" >> {log:q}; exit 1; fi'
)


rule find_adapters:
    input:
        first=sequenced_first,
        second=sequenced_second,
    output:
        found="results/{sample}/trim/adapters.json",
        adapters="results/{sample}/trim/adapters.fasta",
    log:
        "logs/find_adapters/{sample}.log",
    benchmark:
        "results/benchmarks/find_adapters/{sample}.tsv"
    priority: PRIORITY["trim"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 2
    resources:
        mem_mb=doubling(2000),
        runtime=minutes_for("trim"),
        gpu=0,
    params:
        guard=guard,
        reads=arm_reads,
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu adapters {params.reads} --stats {output.found:q} --fasta {output.adapters:q}"
        " --threads {threads} --memory {resources.mem_mb}M 2> {log:q}"


rule trim_pairs:
    input:
        first=sequenced_first,
        second=sequenced_second,
        found="results/{sample}/trim/adapters.json",
        adapters="results/{sample}/trim/adapters.fasta",
    output:
        first="results/{sample}/trim/R1.fastq.gz",
        second="results/{sample}/trim/R2.fastq.gz",
        json="results/{sample}/trim/fastp.json",
        lanes=temp(directory("results/{sample}/trim/lanes")),
    log:
        "logs/trim_reads/{sample}.log",
    benchmark:
        "results/benchmarks/trim_reads/{sample}.tsv"
    wildcard_constraints:
        sample=PAIRED,
    priority: PRIORITY["trim"]
    retries: RETRIES
    conda:
        "../../envs/fastp.yaml"
    threads: config["trim"]["threads"]
    resources:
        mem_mb=doubling(config["trim"]["mem_mb"]),
        runtime=minutes_for("trim"),
        gpu=0,
    params:
        guard=guard,
        lanes=join_lanes,
        reads=joined_reads,
        trimmed=lambda wildcards, output: " ".join(
            [repeated("--out1", output.first), repeated("--out2", output.second)]
        ),
        known=lambda wildcards, input: repeated("--adapter_fasta", input.adapters),
        # Overlaps of mates show the few that there may be.
        unknown="",
        extra=config["trim"]["extra"],
    shell:
        TRIM


rule trim_single:
    input:
        first=sequenced_first,
        found="results/{sample}/trim/adapters.json",
        adapters="results/{sample}/trim/adapters.fasta",
    output:
        first="results/{sample}/trim/reads.fastq.gz",
        json="results/{sample}/trim/fastp.json",
        lanes=temp(directory("results/{sample}/trim/lanes")),
    log:
        "logs/trim_reads/{sample}.log",
    benchmark:
        "results/benchmarks/trim_reads/{sample}.tsv"
    wildcard_constraints:
        sample=SINGLE,
    priority: PRIORITY["trim"]
    retries: RETRIES
    conda:
        "../../envs/fastp.yaml"
    threads: config["trim"]["threads"]
    resources:
        mem_mb=doubling(config["trim"]["mem_mb"]),
        runtime=minutes_for("trim"),
        gpu=0,
    params:
        guard=guard,
        lanes=join_lanes,
        reads=joined_reads,
        trimmed=lambda wildcards, output: repeated("--out1", output.first),
        known=lambda wildcards, input: (
            f'--adapter_sequence "$(sed -n 2p {shlex.quote(str(input.adapters))})"'
            f" {repeated('--adapter_fasta', input.adapters)}"
        ),
        # fastp would look for one, and take what all reads of an amplicon end in.
        unknown="--disable_adapter_trimming",
        extra=config["trim"]["extra"],
    shell:
        TRIM
