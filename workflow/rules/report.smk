# What a person reads: the versions of the tools, the study's manifest, the report, MultiQC.


# Seconds each: on a cluster they run where snakemake does, instead of waiting in the queue.
localrules:
    record_version,
    describe_study,
    write_status,
    check_study,
    write_multiqc_content,


rule record_version:
    output:
        "results/versions/{tool}.txt",
    log:
        "logs/record_version/{tool}.log",
    benchmark:
        "results/benchmarks/record_version/{tool}.tsv"
    wildcard_constraints:
        tool=one_of(VERSION_COMMANDS),
    conda:
        "../../envs/{tool}.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
        gpu=0,
    params:
        command=lambda wildcards: VERSION_COMMANDS[wildcards.tool],
    shell:
        "({params.command}) > {output:q} 2> {log:q}"


rule describe_study:
    input:
        script=script_file("study_manifest.py"),
        versions=expand("results/versions/{tool}.txt", tool=tools_used()),
        results=[path for _, _, path in STUDY_RESULTS],
    output:
        manifest="results/study.json",
    log:
        "logs/describe_study.log",
    benchmark:
        "results/benchmarks/describe_study.tsv"
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
        gpu=0,
    params:
        study=study_text(),
        files=study_files,
    shell:
        "printf '%s\\n' {params.study:q} {params.files:q}"
        " | python {input.script:q} --versions {input.versions:q} -- {output.manifest:q} 2> {log:q}"


rule write_report:
    input:
        study="results/study.json",
        results=[path for _, _, path in STUDY_RESULTS],
    output:
        page=report(
            "results/report.html",
            caption="../report/study.rst",
            category="Study",
            labels={"what": "report"},
        ),
        tables=directory("results/tables/report"),
        methods="results/methods.md",
        software="results/software_versions.yml",
    log:
        "logs/write_report.log",
    benchmark:
        "results/benchmarks/write_report.tsv"
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
        gpu=0,
    shell:
        "ngsgpu report {input.study:q} -o {output.page:q} --tables {output.tables:q}"
        " --methods {output.methods:q} --software {output.software:q} 2> {log:q}"


rule write_status:
    input:
        script=script_file("study_status.py"),
        study="results/study.json",
        results=[path for _, _, path in STUDY_RESULTS],
    output:
        "results/status.tsv",
    log:
        "logs/write_status.log",
    benchmark:
        "results/benchmarks/write_status.tsv"
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
        gpu=0,
    shell:
        "python {input.script:q} {input.study:q} > {output:q} 2> {log:q}"


rule check_study:
    input:
        script=script_file("check_study.py"),
        status="results/status.tsv",
        # It is the last job: what it removes, nothing needs any more.
        others=checked(other_targets),
    output:
        touch("results/complete"),
    log:
        "logs/check_study.log",
    benchmark:
        "results/benchmarks/check_study.tsv"
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
        gpu=0,
    shell:
        "python {input.script:q} {input.status:q} 2> {log:q}"


rule write_multiqc_content:
    input:
        script=script_file("multiqc_content.py"),
        stats="results/{sample}/{stage}/stats.json",
    output:
        bars="results/{sample}/{stage}/{sample}.ngsgpu_{stage}_mqc.json",
        columns="results/{sample}/{stage}/{sample}.ngsgpu_{stage}_generalstats_mqc.json",
    log:
        "logs/write_multiqc_content/{sample}/{stage}.log",
    benchmark:
        "results/benchmarks/write_multiqc_content/{sample}/{stage}.tsv"
    wildcard_constraints:
        stage=one_of(MULTIQC_STAGES),
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=doubling(500),
        runtime=doubling(5),
        gpu=0,
    params:
        guard=guard,
        prefix=lambda wildcards, input: str(Path(input.stats).parent / wildcards.sample),
    shell:
        "{params.guard} {log:q}; "
        "python {input.script:q} {input.stats:q} {params.prefix:q} 2> {log:q}"


rule run_multiqc:
    input:
        results=multiqc_inputs(),
        software="results/software_versions.yml",
    output:
        html=report(
            "results/multiqc/multiqc_report.html",
            caption="../report/multiqc.rst",
            category="Study",
            labels={"what": "MultiQC"},
        ),
        data=directory("results/multiqc/multiqc_report_data"),
    log:
        "logs/run_multiqc.log",
    benchmark:
        "results/benchmarks/run_multiqc.tsv"
    conda:
        "../../envs/multiqc.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
        gpu=0,
    params:
        directory=lambda wildcards, output: Path(output.html).parent,
        title=config["title"],
        settings=multiqc_settings(),
    shell:
        "work=$(mktemp -d); trap 'rm -r \"$work\"' EXIT; "
        'printf "%s\\n" {params.settings:q} > "$work/settings.yaml"; '
        # MultiQC knows versions by the file's name.
        'cp {input.software:q} "$work/software_mqc_versions.yml"; '
        # Beside those of failed samples are notes (see failures.smk).
        '{{ echo "$work/software_mqc_versions.yml"; for file in {input.results:q}; do'
        ' [[ -e $file.failed || -e $file.skipped ]] || echo "$file"; done; }} > "$work/list"; '
        'multiqc --force --config "$work/settings.yaml" --title {params.title:q}'
        " --filename multiqc_report.html --outdir {params.directory:q}"
        ' --file-list "$work/list" > {log:q} 2>&1'
