# Classification: a job opens a partition once and takes all samples through it, for opening is what
# takes longest; then the candidates of each sample are merged.


rule list_samples:
    input:
        first=all_first,
        second=all_second,
    output:
        "results/databases/samples.tsv",
    log:
        "logs/list_samples.log",
    benchmark:
        "results/benchmarks/list_samples.tsv"
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
        gpu=0,
    params:
        sheet=classification_sheet,
    shell:
        "printf '%s\\n' {params.sheet:q} > {output:q} 2> {log:q}"


rule classify_partition:
    input:
        first=all_first,
        second=all_second,
        samples="results/databases/samples.tsv",
        plan="results/databases/{database}/plan.json",
        manifest="results/databases/{database}/db/manifest.json",
        partition="results/databases/{database}/partitions/{partition}.json",
    output:
        temp(
            expand(
                "results/databases/{{database}}/candidates/{{partition}}/{sample}.cand",
                sample=STUDY,
            )
        ),
    log:
        "logs/classify_partition/{database}/{partition}.log",
    benchmark:
        "results/benchmarks/classify_partition/{database}/{partition}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["classify"]["threads"]
    resources:
        mem_mb=planned_memory("index_bytes", 3000),
        runtime=grown(config["classify"]["runtime"]),
        gpu=gpus("classify"),
    params:
        guard=guard_classification,
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        number=lambda wildcards: int(wildcards.partition),
        candidates=lambda wildcards, output: Path(output[0]).parent / "{sample}.cand",
        backend=backend_options,
        extra=config["classify"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        "classify() {{ ngsgpu classify -d {params.database:q} --only-partition {params.number}"
        ' --samples "$1" --candidates {params.candidates:q} --threads {threads}'
        " {params.backend} {params.extra} 2>> {log:q}; }}; "
        ": > {log:q}; status=0; classify {input.samples:q} || status=$?; "
        "if ((status != 2)); then exit $status; fi; "
        # One sample cannot be read: the others one by one.
        "work=$(mktemp -d); for file in {output:q}; do "
        "awk -F '\t' -v name=\"$(basename \"$file\" .cand)\" 'NR == 1 || $1 == name'"
        ' {input.samples:q} > "$work/samples.tsv"; '
        'status=0; classify "$work/samples.tsv" || status=$?; '
        'if ((status == 2)); then note failed "$(last_error)" "$file"; '
        'elif ((status)); then exit $status; fi; done; rm -r "$work"'


rule merge_candidates:
    input:
        candidates=candidates_of_partitions,
        manifest="results/databases/{database}/db/manifest.json",
        partitions=built_partitions,
    output:
        reads="results/{sample}/classify/{database}/{sample}.reads.tsv.gz",
        report=report(
            "results/{sample}/classify/{database}/{sample}.kraken2.report.txt",
            caption="../report/classification.rst",
            category="Classification",
            labels={"sample": "{sample}", "database": "{database}"},
        ),
        kraken="results/{sample}/classify/{database}/{sample}.kraken2.classifiedreads.txt.gz",
        krona="results/{sample}/classify/{database}/{sample}.krona.txt",
        cami="results/{sample}/classify/{database}/{sample}.profile",
        biom="results/{sample}/classify/{database}/{sample}.biom",
        abundance="results/{sample}/classify/{database}/abundance.tsv",
        coverage="results/{sample}/classify/{database}/coverage.tsv",
        stats="results/{sample}/classify/{database}/stats.json",
    log:
        "logs/merge_candidates/{database}/{sample}.log",
    benchmark:
        "results/benchmarks/merge_candidates/{database}/{sample}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 2
    resources:
        mem_mb=grown(4000),
        runtime=grown(config["classify"]["runtime"]),
        gpu=0,
    params:
        guard=guard,
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        rank=config["classify"]["abundance_rank"],
        extra=config["classify"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu classify-merge {input.candidates:q} -d {params.database:q} -o {output.reads:q}"
        " --report {output.report:q} --kraken-reads {output.kraken:q} --krona {output.krona:q}"
        " --cami {output.cami:q} --biom {output.biom:q} --abundance {output.abundance:q}"
        " --abundance-rank {params.rank} --coverage {output.coverage:q} --stats {output.stats:q}"
        " --threads {threads} {params.extra} 2> {log:q}"


rule evaluate_classification:
    input:
        reads="results/{sample}/classify/{database}/{sample}.reads.tsv.gz",
        truth=lambda wildcards: STUDY[wildcards.sample].truth or [],
        taxonomy=lambda wildcards: DATABASES[wildcards.database].taxonomy or [],
        manifest="results/databases/{database}/db/manifest.json",
    output:
        json="results/{sample}/classify/{database}/evaluation.json",
        table="results/{sample}/classify/{database}/evaluation.txt",
    log:
        "logs/evaluate_classification/{database}/{sample}.log",
    benchmark:
        "results/benchmarks/evaluate_classification/{database}/{sample}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=grown(4000),
        runtime=grown(120),
        gpu=0,
    params:
        guard=guard,
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        rank=config["classify"]["abundance_rank"],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate classification --classified {input.reads:q} --name {wildcards.database}"
        " --truth {input.truth:q} --taxonomy {input.taxonomy:q} --references {params.database:q}"
        " --abundance-rank {params.rank} --json {output.json:q} > {output.table:q} 2> {log:q}"
