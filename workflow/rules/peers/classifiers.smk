# Classifiers side by side: the same references, reads and threads, each alone on the machine, and
# judged against the true taxa of the reads.


rule label_references:
    input:
        script=script_file("label_references.py"),
        references=peer_references,
        map=peer_map,
        taxonomy=peer_taxonomy,
    output:
        directory("results/reproduce/references"),
    log:
        "logs/label_references.log",
    benchmark:
        "results/benchmarks/label_references.tsv"
    conda:
        "../../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=120,
        gpu=0,
    shell:
        "python {input.script:q} --map {input.map:q} --taxonomy {input.taxonomy:q}"
        " -o {output:q} {input.references:q} 2> {log:q}"


rule build_program:
    input:
        references="results/reproduce/references",
    output:
        built=directory("results/reproduce/databases/{program}/built"),
    log:
        "logs/build_program/{program}.log",
    benchmark:
        "results/benchmarks/build_program/{program}.tsv"
    conda:
        peer_environment
    threads: whole_machine
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=REPRODUCE["runtime"],
        gpu=peer_gpus,
    params:
        guard=guard,
        commands=build_commands,
    shell:
        "{params.guard} {log:q}; log=$PWD/{log:q}; "
        'ln -s "$PWD/"{input.references:q} {output.built:q}/references; '
        'cd {output.built:q}; ({params.commands}) > "$log" 2>&1'


rule measure_database:
    input:
        built="results/reproduce/databases/{program}/built",
    output:
        size="results/reproduce/databases/{program}/size.json",
        version="results/reproduce/databases/{program}/version.txt",
    log:
        "logs/measure_database/{program}.log",
    benchmark:
        "results/benchmarks/measure_database/{program}.tsv"
    conda:
        peer_environment
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
        gpu=0,
    params:
        guard=guard,
        kept=kept_files,
        command=version_command,
    shell:
        "{params.guard} {log:q}; root=$PWD; cd {input.built:q}; shopt -s globstar nullglob; "
        "(bytes=$(stat -c '%F %s' {params.kept} | awk '$1 == \"regular\" {{n += $NF}} END {{printf \"%.0f\", n}}')"
        ' && printf \'{{"bytes": %s}}\\n\' "$bytes" > "$root/"{output.size:q}'
        " && (({params.command}) 2>&1 || true) | grep -oE '[0-9]+([.][0-9]+)+' | sed -n 1p"
        ' > "$root/"{output.version:q}) 2> "$root/"{log:q}'


rule classify_program:
    input:
        first="results/reproduce/{set}/reads/r1.fq",
        second="results/reproduce/{set}/reads/r2.fq",
        built="results/reproduce/databases/{program}/built",
    output:
        run=temp(directory("results/reproduce/{set}/{program}/classified")),
    log:
        "logs/classify_program/{set}/{program}.log",
    benchmark:
        "results/benchmarks/run_program/{set}/{program}.tsv"
    conda:
        peer_environment
    threads: whole_machine
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=REPRODUCE["runtime"],
        gpu=peer_gpus,
    params:
        guard=guard,
        command=classify_command,
    shell:
        "{params.guard} {log:q}; log=$PWD/{log:q}; "
        'ln -s "$PWD/"{input.first:q} "$PWD/"{input.second:q} "$PWD/"{input.built:q}/db* {output.run:q}; '
        'cd {output.run:q}; ({params.command}) > "$log" 2>&1'


rule judge_classification:
    input:
        run="results/reproduce/{set}/{program}/classified",
        references="results/reproduce/references",
        truth=lambda wildcards: SETS[wildcards.set].truth or [],
    output:
        json="results/reproduce/{set}/{program}/classification.json",
    log:
        "logs/judge_classification/{set}/{program}.log",
    benchmark:
        "results/benchmarks/judge_classification/{set}/{program}.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=60,
        gpu=0,
    params:
        guard=guard,
        calls=lambda wildcards, input: f"{input.run}/{calls_of(wildcards)}",
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate classification --classified {params.calls:q} --name {wildcards.program}"
        " --truth {input.truth:q} --taxonomy {input.references:q}/taxonomy"
        " --references {input.references:q}/map.tsv --json {output.json:q} > {log:q} 2>&1"


rule draw_community:
    input:
        script=script_file("draw_community.py"),
        composition=community("composition"),
        genomes=community_genomes,
    output:
        first="results/reproduce/community/R1.fastq.gz",
        second="results/reproduce/community/R2.fastq.gz",
        truth="results/reproduce/community/truth.tsv",
    log:
        "logs/draw_community.log",
    benchmark:
        "results/benchmarks/draw_community.tsv"
    conda:
        "../../../envs/art.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=240,
        gpu=0,
    params:
        folder=lambda wildcards, output: str(Path(output.first).parent),
        options=community_options,
    shell:
        "python3 {input.script:q} {params.options} {input.composition:q} {params.folder:q}"
        " > {log:q} 2>&1"


rule profile_gold_standard:
    input:
        script=script_file("cami_profile.py"),
        calls="results/reproduce/community/truth.tsv",
        committed=community("gold_standard"),
        taxonomy=peer_taxonomy_folder,
    output:
        "results/reproduce/community/gold_standard.profile",
    log:
        "logs/profile_gold_standard.log",
    benchmark:
        "results/benchmarks/profile_gold_standard.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
        gpu=0,
    params:
        name=REPRODUCE["community"].get("name", ""),
    shell:
        "(python {input.script:q} --truth {input.calls:q} --taxonomy {input.taxonomy:q}"
        " --name {params.name:q} -o {output:q}"
        # Other reads than those that the gold standard was made of: another ART, or other genomes.
        " && cmp {output:q} {input.committed:q}) 2> {log:q} >&2"


rule profile_calls:
    input:
        script=script_file("cami_profile.py"),
        run="results/reproduce/{set}/{program}/classified",
        references="results/reproduce/references",
    output:
        "results/reproduce/{set}/{program}/calls.profile",
    log:
        "logs/profile_calls/{set}/{program}.log",
    benchmark:
        "results/benchmarks/profile_calls/{set}/{program}.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=60,
        gpu=0,
    params:
        calls=lambda wildcards, input: f"{input.run}/{calls_of(wildcards)}",
    shell:
        "python {input.script:q} --calls {params.calls:q} --references {input.references:q}/map.tsv"
        " --taxonomy {input.references:q}/taxonomy --name {wildcards.set:q} -o {output:q} 2> {log:q}"


rule run_opal:
    input:
        gold="results/reproduce/community/gold_standard.profile",
        profiles=community_profiles,
    output:
        directory("results/reproduce/community/opal"),
    log:
        "logs/run_opal.log",
    benchmark:
        "results/benchmarks/run_opal.tsv"
    conda:
        "../../../envs/opal.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
        gpu=0,
    params:
        labels=",".join(PROGRAMS),
    shell:
        "opal.py -g {input.gold:q} -l {params.labels:q} -o {output:q} {input.profiles:q} > {log:q} 2>&1"


rule compare_with_opal:
    input:
        script=script_file("compare_with_opal.py"),
        opal="results/reproduce/community/opal",
        judged=community_judged,
    output:
        "results/reproduce/community/opal.tsv",
    log:
        "logs/compare_with_opal.log",
    benchmark:
        "results/benchmarks/compare_with_opal.tsv"
    conda:
        "../../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python {input.script:q} --opal {input.opal:q}/results.tsv -o {output:q} {input.judged:q}"
        " 2> {log:q}"
