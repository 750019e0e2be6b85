# Databases of reference sequences: planned once, then built partition by partition, each by a job
# of its own whose memory the plan tells.


rule plan_database:
    input:
        reference_files,
    output:
        manifest="results/databases/{database}/db/manifest.json",
        plan="results/databases/{database}/plan.json",
    log:
        "logs/plan_database/{database}.log",
    benchmark:
        "results/benchmarks/plan_database/{database}.tsv"
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["database"]["threads"]
    resources:
        mem_mb=4000,
        runtime=config["database"]["runtime"],
        gpu=0,
    params:
        database=lambda wildcards, output: str(Path(output.manifest).parent),
        options=plan_options,
        extra=config["database"]["extra"],
    shell:
        "(ngsgpu db plan {params.options} -d {params.database} --threads {threads} {params.extra}"
        " && ngsgpu db info -d {params.database} --json > {output.plan}) 2> {log} >&2"


rule build_partition:
    input:
        manifest="results/databases/{database}/db/manifest.json",
        plan="results/databases/{database}/plan.json",
    output:
        "results/databases/{database}/db/partition-{partition}-0001/manifest.json",
    log:
        "logs/build_partition/{database}/{partition}.log",
    benchmark:
        "results/benchmarks/build_partition/{database}/{partition}.tsv"
    retries: 2
    conda:
        "../../envs/ngsgpu.yaml"
    threads: config["database"]["threads"]
    resources:
        mem_mb=planned_memory("build_bytes", 2000),
        runtime=config["database"]["runtime"],
        gpu=gpus("database"),
    params:
        database=lambda wildcards, input: str(Path(input.manifest).parent),
        number=lambda wildcards: int(wildcards.partition),
        backend=backend_options,
    shell:
        "ngsgpu db build -d {params.database} --only-partition {params.number}"
        " --threads {threads} --memory {resources.mem_mb}M {params.backend} 2> {log}"
