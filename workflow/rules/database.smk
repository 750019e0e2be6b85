# Databases of reference sequences: planned once, then built partition by partition, each by a separate
# job whose memory the plan states. New references are added to a database that is there.


rule plan_database:
    input:
        reference_files,
    output:
        # Kept until the new plan is there, so that a plan that fails takes no database away.
        manifest=update("results/databases/{database}/db/manifest.json"),
        plan="results/databases/{database}/plan.json",
    log:
        "logs/plan_database/{database}.log",
    benchmark:
        "results/benchmarks/plan_database/{database}.tsv"
    wildcard_constraints:
        database=one_of(BUILT),
    priority: PRIORITY["database"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["database"]["threads"]
    resources:
        mem_mb=plan_memory,
        runtime=build_minutes,
        gpu=0,
    params:
        guard=guard_plan,
        database=lambda wildcards, output: str(Path(output.manifest).parent),
        options=plan_options,
        extra=config["database"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        "(ngsgpu db plan --update {params.options} -d {params.database:q} --threads {threads}"
        " --memory {resources.mem_mb}M {params.extra} && touch {output.manifest:q}"
        " && ngsgpu db info -d {params.database:q} --json > {output.plan:q}) 2> {log:q} >&2"


rule check_database:
    # One that was made elsewhere: read, never written to.
    input:
        manifest=manifest_of,
    output:
        plan="results/databases/{database}/plan.json",
    log:
        "logs/check_database/{database}.log",
    benchmark:
        "results/benchmarks/check_database/{database}.tsv"
    wildcard_constraints:
        database=one_of(FOREIGN),
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(config["database"]["runtime"]),
        gpu=0,
    params:
        guard=guard,
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        verify="true" if config["database"]["verify"] else "false",
    shell:
        "{params.guard} {log:q}; "
        "(ngsgpu db info -d {params.database:q} --json > {output.plan:q}"
        " && if grep -q '\"built\": false' {output.plan:q}; then"
        ' echo "ngsgpu: error: a partition of the database is not built" >&2; exit 2; fi'
        " && if {params.verify}; then ngsgpu db verify -d {params.database:q} >&2; fi) 2> {log:q}"


rule build_partition:
    input:
        reference_files,
        manifest="results/databases/{database}/db/manifest.json",
        plan="results/databases/{database}/plan.json",
    output:
        "results/databases/{database}/partitions/{partition}.json",
    log:
        "logs/build_partition/{database}/{partition}.log",
    benchmark:
        "results/benchmarks/build_partition/{database}/{partition}.tsv"
    priority: PRIORITY["database"]
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["database"]["threads"]
    resources:
        mem_mb=planned_memory("build_bytes", 2000),
        runtime=build_minutes,
        gpu_mem_mb=planned_gpu_memory("build_bytes", GPU_BUILD_SHARE),
        gpu=gpus("database"),
    params:
        guard=guard,
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        number=lambda wildcards: int(wildcards.partition),
        # Beside, and no output: a partition that is there already needs no job.
        stats=lambda wildcards, output: Path(output[0]).with_suffix(".stats.json"),
        backend=backend_options,
    shell:
        "{params.guard} {log:q}; "
        # The folder of a partition has the number of the plan in its name, which is none of ours.
        "(ngsgpu db build -d {params.database:q} --only-partition {params.number} --if-missing"
        " --threads {threads} --memory {resources.mem_mb}M {params.backend}"
        " --stats {params.stats:q}"
        " && cp {params.database:q}/partition-{wildcards.partition}-*/manifest.json {output:q}) 2> {log:q}"
