# Published comparisons, run again: reads as plain files for all programs, and the page that sets what
# was measured beside what was published. The programs are run under peers/.


rule unpack_reads:
    input:
        first=lambda wildcards: SETS[wildcards.set].first,
        second=lambda wildcards: SETS[wildcards.set].second,
        reference=set_reference,
    output:
        first=temp("results/reproduce/{set}/reads/r1.fq"),
        second=temp("results/reproduce/{set}/reads/r2.fq"),
        both=temp("results/reproduce/{set}/reads/both.fq"),
        facts="results/reproduce/{set}/facts.sh",
    log:
        "logs/unpack_reads/{set}.log",
    benchmark:
        "results/benchmarks/unpack_reads/{set}.tsv"
    conda:
        "../../envs/python.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=120,
        gpu=0,
    params:
        guard=guard,
    shell:
        "{params.guard} {log:q}; "
        'plain() {{ for file in "$@"; do gzip -cdf "$file" || return; done; }}; '
        "(plain {input.first:q} > {output.first:q}"
        " && plain {input.second:q} > {output.second:q}"
        " && cat {output.first:q} {output.second:q} > {output.both:q}"
        " && plain {input.reference:q}"
        " | awk '!/^>/ {{n += length($0)}} END {{printf \"genome=%.0f\\n\", n}}' > {output.facts:q}"
        " && . {output.facts:q}"
        ' && awk -v genome="$genome" \'NR % 4 == 2 {{n += length($0)}} END'
        ' {{printf "coverage=%.0f\\nreads=%.0f\\n", genome ? n / genome : 0, NR / 4}}\''
        " {output.both:q} >> {output.facts:q}) 2> {log:q}"


rule set_beside:
    input:
        script=script_file("reproduction_page.py"),
        published=REPRODUCE["published"],
        figures=[path for _, path in reproduction_files()],
    output:
        html=report(
            "results/reproduction.html",
            caption="../report/reproduction.rst",
            category="Reproduction",
            labels={"what": "measured beside published"},
        ),
        json="results/reproduction.json",
        markdown="results/reproduction.md",
    log:
        "logs/set_beside.log",
    benchmark:
        "results/benchmarks/set_beside.tsv"
    conda:
        "../../envs/ngsgpu.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    params:
        # A function, since Snakemake would take braces in a text for wildcards.
        description=lambda wildcards: reproduction_text(),
        lines=reproduction_lines,
    shell:
        "printf '%s\\n' {params.description:q} {params.lines:q}"
        " | python {input.script:q} --published {input.published:q} --html {output.html:q}"
        " --json {output.json:q} --markdown {output.markdown:q} 2> {log:q}"
