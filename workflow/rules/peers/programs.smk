# Correctors, mergers and extenders side by side: each is run on the same plain files with the same
# number of threads, alone on the machine, and judged against the truth of the simulation.


localrules:
    record_program,


rule compile_kernels:
    input:
        first="results/reproduce/{set}/reads/r1.fq",
        second="results/reproduce/{set}/reads/r2.fq",
        both="results/reproduce/{set}/reads/both.fq",
        facts="results/reproduce/{set}/facts.sh",
    output:
        temp(touch("results/reproduce/{set}/{program}/compiled")),
    log:
        "logs/compile_kernels/{set}/{program}.log",
    benchmark:
        "results/benchmarks/compile_kernels/{set}/{program}.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: REPRODUCE["threads"]
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=30,
        gpu=peer_gpus,
    params:
        command=peer_command,
    shell:
        # Few reads may be too few for an estimate; what is compiled stays all the same.
        "work=$(mktemp -d); log=$PWD/{log:q}; head -n 8000 {input.first:q} > $work/r1.fq; "
        "head -n 8000 {input.second:q} > $work/r2.fq; "
        '. {input.facts:q}; (cd $work && {params.command}) > "$log" 2>&1 || true; rm -r $work'


rule run_program:
    input:
        first="results/reproduce/{set}/reads/r1.fq",
        second="results/reproduce/{set}/reads/r2.fq",
        both="results/reproduce/{set}/reads/both.fq",
        facts="results/reproduce/{set}/facts.sh",
        compiled=compiled,
    output:
        run=temp(directory("results/reproduce/{set}/{program}/run")),
    log:
        "logs/run_program/{set}/{program}.log",
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
        command=peer_command,
    shell:
        "{params.guard} {log:q}; log=$PWD/{log:q}; . {input.facts:q}; "
        'ln -s "$PWD/"{input.first:q} "$PWD/"{input.second:q} "$PWD/"{input.both:q} {output.run:q}; '
        # CARE and Lighter do not make their folders.
        "cd {output.run:q}; mkdir -p care-cpu care-gpu lighter flash; "
        'export PATH="$PATH:/usr/lib/abyss:/usr/share/bbmap"; ({params.command}) 2> "$log" >&2'


rule record_program:
    output:
        "results/reproduce/versions/{program}.txt",
    log:
        "logs/record_program/{program}.log",
    benchmark:
        "results/benchmarks/record_program/{program}.tsv"
    conda:
        peer_environment
    threads: 1
    resources:
        mem_mb=1000,
        runtime=5,
        gpu=0,
    params:
        command=version_command,
    shell:
        'export PATH="$PATH:/usr/lib/abyss:/usr/share/bbmap"; '
        "(({params.command}) 2>&1 || true) | grep -oE '[0-9]+([.][0-9]+)+|\\br[0-9]+' | sed -n 1p"
        " > {output:q} 2> {log:q}"


rule restore_corrected:
    input:
        script=script_file("restore_reads.py"),
        first="results/reproduce/{set}/reads/r1.fq",
        second="results/reproduce/{set}/reads/r2.fq",
        run="results/reproduce/{set}/{program}/run",
    output:
        first=temp("results/reproduce/{set}/{program}/corrected_1.fq"),
        second=temp("results/reproduce/{set}/{program}/corrected_2.fq"),
    log:
        "logs/restore_corrected/{set}/{program}.log",
    benchmark:
        "results/benchmarks/restore_corrected/{set}/{program}.tsv"
    conda:
        "../../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=240,
        gpu=0,
    params:
        guard=guard,
        outputs=peer_outputs,
    shell:
        "{params.guard} {log:q}; "
        "python {input.script:q} --raw {input.first:q} {input.second:q}"
        " --restored {output.first:q} {output.second:q} -- {params.outputs} 2> {log:q}"


rule judge_correction:
    input:
        raw_first="results/reproduce/{set}/reads/r1.fq",
        raw_second="results/reproduce/{set}/reads/r2.fq",
        first="results/reproduce/{set}/{program}/corrected_1.fq",
        second="results/reproduce/{set}/{program}/corrected_2.fq",
        truth="results/{set}/simulate/truth.sam.gz",
        alignments="results/{set}/simulate/alignments.sam.gz",
    output:
        json="results/reproduce/{set}/{program}/correction.json",
    log:
        "logs/judge_correction/{set}/{program}.log",
    benchmark:
        "results/benchmarks/judge_correction/{set}/{program}.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=240,
        gpu=0,
    params:
        guard=guard,
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate correction --truth {input.truth:q} --alignments {input.alignments:q}"
        " -i {input.raw_first:q} -I {input.raw_second:q} -o {input.first:q} -O {input.second:q}"
        " --json {output.json:q} > {log:q} 2>&1"


rule judge_kmers:
    input:
        raw_first="results/reproduce/{set}/reads/r1.fq",
        raw_second="results/reproduce/{set}/reads/r2.fq",
        first="results/reproduce/{set}/{program}/corrected_1.fq",
        second="results/reproduce/{set}/{program}/corrected_2.fq",
        reference=set_reference,
    output:
        json="results/reproduce/{set}/{program}/kmers.json",
    log:
        "logs/judge_kmers/{set}/{program}.log",
    benchmark:
        "results/benchmarks/judge_kmers/{set}/{program}.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=240,
        gpu=0,
    params:
        guard=guard,
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate kmers --exact --reference {input.reference:q} -i {input.raw_first:q}"
        " -I {input.raw_second:q} -o {input.first:q} -O {input.second:q} --json {output.json:q}"
        " > {log:q} 2>&1"


rule judge_mapped:
    input:
        first="results/reproduce/{set}/reads/r1.fq",
        second="results/reproduce/{set}/reads/r2.fq",
        made=mapped_output,
        reference=set_reference,
        alignments="results/{set}/evaluate/alignments.sam.gz",
    output:
        json="results/reproduce/{set}/{program}/mapped.json",
    log:
        "logs/judge_mapped/{set}/{program}.log",
    benchmark:
        "results/benchmarks/judge_mapped/{set}/{program}.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=240,
        gpu=0,
    params:
        guard=guard,
        files=lambda wildcards, input: " ".join(
            repeated(option, path)
            for option, path in zip(
                ["-m"] if REPRODUCED == "merge" else ["-o", "-O"], listed(input.made)
            )
        ),
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate mapped --reference {input.reference:q} -i {input.first:q}"
        " -I {input.second:q} {params.files} --alignments {input.alignments:q}"
        " --json {output.json:q} > {log:q} 2>&1"


rule assemble_corrected:
    input:
        first=lambda wildcards: assembled_mate(wildcards, 1),
        second=lambda wildcards: assembled_mate(wildcards, 2),
    output:
        contigs="results/reproduce/{set}/{program}/contigs.fasta",
        work=temp(directory("results/reproduce/{set}/{program}/spades")),
    log:
        "logs/assemble_corrected/{set}/{program}.log",
    benchmark:
        "results/benchmarks/assemble_corrected/{set}/{program}.tsv"
    retries: RETRIES
    conda:
        "../../../envs/spades.yaml"
    threads: config["assemble"]["threads"]
    resources:
        mem_mb=doubling(config["assemble"]["mem_mb"]),
        runtime=doubling(config["assemble"]["runtime"]),
        gpu=0,
    params:
        guard=guard,
        threads=config["assemble"]["threads"],
        kmers=config["assemble"]["kmers"],
        extra=config["assemble"]["extra"],
    shell:
        "{params.guard} {log:q}; "
        "(spades.py --only-assembler -1 {input.first:q} -2 {input.second:q} -k {params.kmers}"
        " --threads {params.threads} --memory $(({resources.mem_mb} / 1024)) {params.extra}"
        " -o {output.work:q} && touch {output.work:q}/contigs.fasta"
        " && cp {output.work:q}/contigs.fasta {output.contigs:q}) > {log:q} 2>&1"


rule compare_corrected_assemblies:
    input:
        contigs=lambda wildcards: [
            f"results/reproduce/{wildcards.set}/{name}/contigs.fasta"
            for name in assembled_arms()
        ],
        reference=set_reference,
    output:
        tsv="results/reproduce/{set}/quast/report.tsv",
        work=directory("results/reproduce/{set}/quast/details"),
    log:
        "logs/compare_corrected_assemblies/{set}.log",
    benchmark:
        "results/benchmarks/compare_corrected_assemblies/{set}.tsv"
    retries: RETRIES
    conda:
        "../../../envs/quast.yaml"
    threads: config["quast"]["threads"]
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(240),
        gpu=0,
    params:
        labels=",".join(assembled_arms()),
        min_contig=config["quast"]["min_contig"],
    shell:
        "(quast.py --threads {threads} --labels {params.labels} --min-contig {params.min_contig}"
        " --no-icarus --no-plots -r {input.reference:q} -o {output.work:q} {input.contigs:q}"
        " && cp {output.work:q}/report.tsv {output.tsv:q}) > {log:q} 2>&1"


rule judge_merging:
    input:
        script=script_file("restore_reads.py"),
        first="results/reproduce/{set}/reads/r1.fq",
        second="results/reproduce/{set}/reads/r2.fq",
        run="results/reproduce/{set}/{program}/run",
        truth=lambda wildcards: (
            f"results/{wildcards.set}/simulate/truth.sam.gz"
            if wildcards.set in DATASETS
            else []
        ),
    output:
        json="results/reproduce/{set}/{program}/merging.json",
        merged=temp("results/reproduce/{set}/{program}/merged.fq"),
    log:
        "logs/judge_merging/{set}/{program}.log",
    benchmark:
        "results/benchmarks/judge_merging/{set}/{program}.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=240,
        gpu=0,
    params:
        guard=guard,
        outputs=lambda wildcards, input: peer_outputs(wildcards, input)[0],
        judge=lambda wildcards, input: (
            f"ngsgpu evaluate merging --truth {shlex.quote(str(input.truth))}"
            if input.get("truth")
            else "true"
        ),
    shell:
        "{params.guard} {log:q}; "
        # Without a truth, the number of merged pairs is all that can be said.
        "(python {input.script:q} --order --raw {input.first:q} --restored {output.merged:q}"
        " --count {output.json:q} -- {params.outputs}"
        " && {params.judge} -i {input.first:q} -I {input.second:q} -m {output.merged:q}"
        " --json {output.json:q}) > {log:q} 2>&1"


rule judge_extension:
    input:
        run="results/reproduce/{set}/{program}/run",
        truth="results/{set}/simulate/truth.sam.gz",
        reference=set_reference,
    output:
        json="results/reproduce/{set}/{program}/extension.json",
    log:
        "logs/judge_extension/{set}/{program}.log",
    benchmark:
        "results/benchmarks/judge_extension/{set}/{program}.tsv"
    conda:
        "../../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=REPRODUCE["mem_mb"],
        runtime=240,
        gpu=0,
    params:
        guard=guard,
        outputs=lambda wildcards, input: peer_outputs(wildcards, input)[0],
    shell:
        "{params.guard} {log:q}; "
        "ngsgpu evaluate extension --truth {input.truth:q} --reference {input.reference:q}"
        " --extended {params.outputs} --json {output.json:q} > {log:q} 2>&1"
