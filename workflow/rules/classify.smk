# Classification: a job opens a partition once and takes a batch of samples through it, for opening
# is what takes longest; then the candidates of each sample are merged (which samples are a batch:
# common/batches.smk). With classify.server the partition is opened once for all batches, by a service
# that runs beside their jobs and computes for them.


localrules:
    list_samples,


rule list_samples:
    input:
        reads=batch_reads,
        left=left_reads,
    output:
        "results/databases/{database}/batches/{batch}.tsv",
    log:
        "logs/list_samples/{database}/{batch}.log",
    benchmark:
        "results/benchmarks/list_samples/{database}/{batch}.tsv"
    # A moment's work, and what is written is what the next jobs go by.
    localrule: True
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
        gpu=0,
    params:
        sheet=batch_rows,
    shell:
        "printf '%s\\n' {params.sheet:q} > {output:q} 2> {log:q}"


rule serve_partition:
    input:
        plan="results/databases/{database}/plan.json",
        manifest=manifest_of,
        partition=built_partition,
    output:
        service("results/databases/{database}/served/{partition}"),
    log:
        "logs/serve_partition/{database}/{partition}.log",
    benchmark:
        "results/benchmarks/serve_partition/{database}/{partition}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["classify"]["threads"]
    resources:
        mem_mb=planned_memory("index_bytes", 3000),
        runtime=doubling(config["classify"]["runtime"]),
        gpu_mem_mb=planned_gpu_memory("index_bytes"),
        gpu=gpus("classify"),
    params:
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        number=lambda wildcards: int(wildcards.partition),
        backend=backend_options,
    # Snakemake ends the process of the shell, which is therefore the server.
    shell:
        "exec ngsgpu db serve -d {params.database:q} --only-partition {params.number}"
        " --socket {output:q} --threads {threads} {params.backend} > {log:q} 2>&1"


rule classify_partition:
    input:
        samples=batch_sheet,
        plan="results/databases/{database}/plan.json",
        manifest=manifest_of,
        partition=built_partition,
        server=server_of_partition,
    output:
        candidates=temp(
            directory("results/databases/{database}/candidates/{batch}/{partition}")
        ),
    log:
        "logs/classify_partition/{database}/{batch}/{partition}.log",
    benchmark:
        "results/benchmarks/classify_partition/{database}/{batch}/{partition}.tsv"
    priority: PRIORITY["classify"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 0 if config["classify"]["server"] else config["classify"]["threads"]
    resources:
        mem_mb=unless_served(planned_memory("index_bytes", 3000), 200),
        runtime=batch_minutes,
        gpu_mem_mb=unless_served(planned_gpu_memory("index_bytes"), 0),
        gpu=unless_served(gpus("classify"), 0),
    params:
        guard=guard_classification,
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        number=lambda wildcards: int(wildcards.partition),
        candidates=lambda wildcards, output: f"{output.candidates}/{{sample}}.cand",
        names=batch_names,
        # Kept beside for the report, unlike the candidates.
        stats=lambda wildcards, output: (
            Path(output.candidates).parents[2]
            / f"jobs/{wildcards.batch}/{wildcards.partition}/{{sample}}.json"
        ),
        threads=config["classify"]["threads"],
        backend=unless_served(backend_options, server_option),
        extra=batch_extra,
    shell:
        "{params.guard} {log:q}; "
        "classify() {{ ngsgpu classify -d {params.database:q} --only-partition {params.number}"
        ' --samples "$1" --candidates {params.candidates:q} --threads {params.threads}'
        " --stats {params.stats:q} {params.backend} {params.extra} 2>> {log:q}; }}; "
        'mkdir -p "$(dirname {params.stats:q})"; '
        ": > {log:q}; folder={output.candidates:q}; sheet=$folder/samples.tsv; "
        # Those that have left the batch are still in the sheet. A sample whose correction or merging
        # failed has notes beside its reads, to be passed on.
        'head -n 1 {input.samples:q} > "$sheet"; '
        "while IFS= read -r row; do IFS=$'\t' read -r name first _ <<< \"$row\"; "
        'if [[ " {params.names} " != *" $name "* ]]; then continue; fi; '
        'if noted "$first"; then pass_on "$first" "$folder/$name.cand"; '
        'else echo "$row" >> "$sheet"; fi; done < <(tail -n +2 {input.samples:q}); '
        'status=0; if (($(wc -l < "$sheet") > 1)); then classify "$sheet" || status=$?; fi; '
        "if ((status == 2)) && ! without_server; then "
        # One sample cannot be read: the others one by one.
        'status=0; for name in $(tail -n +2 "$sheet" | cut -f 1 | uniq); do '
        'awk -F \'\t\' -v name="$name" \'NR == 1 || $1 == name\' "$sheet" > "$folder/one.tsv"; '
        'status=0; classify "$folder/one.tsv" || status=$?; '
        'if ((status == 2)) && $guard_goes_on; then note failed "$(last_error)" "$folder/$name.cand"; '
        "elif ((status)); then exit $status; fi; done; "
        "elif ((status)); then exit $status; fi; "
        'rm -f "$sheet" "$folder/one.tsv"'


rule merge_candidates:
    input:
        reads=sample_reads,
        candidates=candidates_of_batches,
        manifest=manifest_of,
        plan="results/databases/{database}/plan.json",
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
        evidence="results/{sample}/classify/{database}/evidence.tsv",
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
        mem_mb=doubling(4000),
        runtime=doubling(config["classify"]["runtime"]),
        gpu=0,
    params:
        guard=guard_calls,
        candidates=lambda wildcards, input: " ".join(
            map(shlex.quote, candidate_files(wildcards, input))
        ),
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        rank=config["classify"]["abundance_rank"],
        extra=extra("classify"),
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu classify-merge {params.candidates} -d {params.database:q} -o {output.reads:q}"
        " --report {output.report:q} --kraken-reads {output.kraken:q} --krona {output.krona:q}"
        " --cami {output.cami:q} --biom {output.biom:q} --abundance {output.abundance:q}"
        " --abundance-rank {params.rank} --coverage {output.coverage:q}"
        " --evidence {output.evidence:q} --stats {output.stats:q}"
        " --threads {threads} {params.extra} 2> {log:q}"


rule evaluate_classification:
    input:
        reads="results/{sample}/classify/{database}/{sample}.reads.tsv.gz",
        truth=lambda wildcards: STUDY[wildcards.sample].truth or [],
        taxonomy=taxonomy_if_known,
        manifest=manifest_of,
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
        mem_mb=doubling(4000),
        runtime=doubling(120),
        gpu=0,
    params:
        guard=guard,
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        rank=config["classify"]["abundance_rank"].split(",")[0],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate classification --classified {input.reads:q} --name {wildcards.database}"
        " --truth {input.truth:q} --taxonomy {input.taxonomy:q} --references {params.database:q}"
        " --abundance-rank {params.rank} --json {output.json:q} > {output.table:q} 2> {log:q}"
