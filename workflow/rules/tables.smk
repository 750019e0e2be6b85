# What people merge: taxa by samples for each database, as tables, BIOM and Krona's page.


rule merge_reports:
    input:
        reports=reports_of,
    output:
        reads="results/tables/{database}.reads.tsv",
        abundances="results/tables/{database}.abundances.tsv",
        taxpasta="results/tables/{database}.taxpasta.tsv",
        biom="results/tables/{database}.biom",
    log:
        "logs/merge_reports/{database}.log",
    benchmark:
        "results/benchmarks/merge_reports/{database}.tsv"
    retries: RETRIES
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(30),
        gpu=0,
    params:
        guard=guard_merged,
    shell:
        "{params.guard} {log:q}; "
        'reports=(); for file in {input.reports:q}; do noted "$file" || reports+=("$file"); done; '
        'if ((${{#reports[@]}} == 0)); then note skipped "no sample was classified" {output:q}; '
        "exit 0; fi; "
        'ngsgpu classify-table "${{reports[@]}}" --reads {output.reads:q}'
        " --abundances {output.abundances:q} --taxpasta {output.taxpasta:q} --biom {output.biom:q}"
        " 2> {log:q}"


rule draw_krona:
    input:
        texts=krona_of,
    output:
        html=report(
            "results/tables/{database}.krona.html",
            caption="../report/krona.rst",
            category="Classification",
            labels={"sample": "all", "database": "{database}"},
        ),
    log:
        "logs/draw_krona/{database}.log",
    benchmark:
        "results/benchmarks/draw_krona/{database}.tsv"
    retries: RETRIES
    conda:
        "../../envs/krona.yaml"
    threads: 1
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(30),
        gpu=0,
    params:
        guard=guard_merged,
    shell:
        "{params.guard} {log:q}; "
        'texts=(); for file in {input.texts:q}; do noted "$file" || '
        'texts+=("$file,$(basename "$file" .krona.txt)"); done; '
        'if ((${{#texts[@]}} == 0)); then note skipped "no sample was classified" {output.html:q}; '
        "exit 0; fi; "
        # Perl's hashes, and so the order of taxa, differ from run to run otherwise.
        'PERL_HASH_SEED=0 ktImportText -o {output.html:q} -n root "${{texts[@]}}" > {log:q} 2>&1'
