# Stages of a sample in one job, where the config names some (`chain`): `ngsgpu run` makes the outputs of
# the stages' rules, and the reads go from stage to stage in memory. There is a rule for each kind of
# samples (chain_pairs, chain_single, chain_simulated), and others, named after their stages, for samples
# whose later stages are made again by their usual rules (common/chain.smk).

CHAIN = (
    "{params.guard} {log:q}; {params.settings}; status=0; "
    'ngsgpu run "${{settings[@]}}" {params.arguments} {params.reads} --sample {wildcards.sample:q}'
    " -o {params.folder:q} --threads {threads} {params.backend} --memory {resources.mem_mb}M"
    " 2> {log:q} || status=$?; "
    # After the outputs: those that are newer were made by others.
    "printf '%s\\n' {params.record:q} > {output.record:q}; exit $status"
)


for own in chain_rules():

    rule:
        name:
            own.name
        input:
            first=reads_of_chain(0),
            second=reads_of_chain(1),
            found=input_of_stage("trim", "results/{sample}/trim/adapters.json"),
            adapters=input_of_stage("trim", "results/{sample}/trim/adapters.fasta"),
            host=input_of_stage("deplete", host_index),
        output:
            **own.outputs,
        log:
            "logs/chain_reads/{sample}.log",
        benchmark:
            "results/benchmarks/chain_reads/{sample}.tsv"
        wildcard_constraints:
            sample=own.samples,
        priority: own.priority
        retries: RETRIES
        conda:
            "../../envs/ngsgpu.yaml"
        threads: own.threads
        resources:
            mem_mb=chain_memory,
            runtime=chain_minutes,
            gpu=own.gpu,
        params:
            guard=guard_chain,
            settings=chain_settings,
            arguments=lambda wildcards, input, output, resources: " ".join(
                chain_arguments(wildcards, input, output, resources)
            ),
            reads=arm_reads,
            folder=lambda wildcards, output: str(Path(output.record).parent),
            backend=backend_options,
            record=chain_record,
        shell:
            CHAIN
