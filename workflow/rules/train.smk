# The forests of `ngsgpu correct --model` from scratch: a separate workflow, since no study needs
# it. Simulate reads (ART), record the positions that forests decide on, grow the trees, export:
#
#     snakemake -s workflow/rules/train.smk --configfile config/train/config.yaml --cores 2
#
# With `genomes`, `datasets` and so on from --config these come from elsewhere.
import csv
from pathlib import Path

SCRIPTS = Path(workflow.basedir).parents[1] / "scripts"

with open(config["datasets"]) as table:
    DATASETS = {row["dataset"]: row for row in csv.DictReader(table, delimiter="\t")}


wildcard_constraints:
    dataset="|".join(DATASETS),
    organism="|".join(config["leave_out"] or ["none"]),


def simulation(wildcards):
    """Options of scripts/training_reads.py for a dataset."""
    row = DATASETS[wildcards.dataset]
    names = ("start", "length", "profile", "read_length", "fragment", "coverage")
    names += ("second_share", "snv_rate", "seed")
    options = [f"--{name.replace('_', '-')} {row[name]}" for name in names]
    return " ".join(options + ["--bins"] * (row["bins"] == "yes"))


def genome(wildcards):
    return Path(config["genomes"]) / DATASETS[wildcards.dataset]["genome"]


rule all:
    input:
        config["model"],
        expand(
            "{results}/without_{organism}.forests",
            results=config["results"],
            organism=config["leave_out"],
        ),


rule simulate_training_reads:
    input:
        genome=genome,
    output:
        first=temp("{results}/reads/{dataset}_1.fq"),
        second=temp("{results}/reads/{dataset}_2.fq"),
        truth=temp("{results}/reads/{dataset}.sam"),
    log:
        "{results}/logs/simulate/{dataset}.log",
    benchmark:
        "{results}/benchmarks/simulate/{dataset}.tsv"
    conda:
        "../../envs/art.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
        gpu=0,
    params:
        script=SCRIPTS / "training_reads.py",
        prefix=lambda wildcards, output: output.truth.removesuffix(".sam"),
        options=simulation,
    shell:
        "python {params.script:q} --genome {input.genome:q} --out {params.prefix:q}"
        " {params.options} 2> {log:q}"


rule extract_samples:
    input:
        first="{results}/reads/{dataset}_1.fq",
        second="{results}/reads/{dataset}_2.fq",
        truth="{results}/reads/{dataset}.sam",
    output:
        "{results}/samples/{dataset}.npz",
    log:
        "{results}/logs/extract/{dataset}.log",
    benchmark:
        "{results}/benchmarks/extract/{dataset}.tsv"
    conda:
        "../../envs/train.yaml"
    threads: 2
    resources:
        mem_mb=8000,
        runtime=60,
        gpu=0,
    params:
        group=lambda wildcards: DATASETS[wildcards.dataset]["organism"],
        rows=config["extract"]["rows"],
        every=config["extract"]["every"],
    shell:
        "ngsgpu train extract --truth {input.truth:q} -i {input.first:q} -I {input.second:q}"
        " --out {output:q} --group {params.group:q} --rows {params.rows} --every {params.every}"
        " --threads {threads} 2> {log:q}"


rule fit_forests:
    input:
        expand("{{results}}/samples/{dataset}.npz", dataset=DATASETS),
    output:
        "{results}/all.npz",
    log:
        "{results}/logs/fit/all.log",
    benchmark:
        "{results}/benchmarks/fit/all.tsv"
    conda:
        "../../envs/train.yaml"
    threads: 2
    resources:
        mem_mb=8000,
        runtime=60,
        gpu=0,
    params:
        options=config["fit"],
    shell:
        "ngsgpu train fit {input:q} --out {output:q} {params.options} > {log:q} 2>&1"


rule fit_forests_without:
    input:
        expand("{{results}}/samples/{dataset}.npz", dataset=DATASETS),
    output:
        "{results}/without_{organism}.npz",
    log:
        "{results}/logs/fit/without_{organism}.log",
    benchmark:
        "{results}/benchmarks/fit/without_{organism}.tsv"
    conda:
        "../../envs/train.yaml"
    threads: 2
    resources:
        mem_mb=8000,
        runtime=60,
        gpu=0,
    params:
        options=config["fit"],
    shell:
        "ngsgpu train fit {input:q} --leave-out {wildcards.organism:q} --out {output:q}"
        " {params.options} > {log:q} 2>&1"


rule export_model_without:
    input:
        "{results}/without_{organism}.npz",
    output:
        "{results}/without_{organism}.forests",
    log:
        "{results}/logs/export/without_{organism}.log",
    benchmark:
        "{results}/benchmarks/export/without_{organism}.tsv"
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    shell:
        "ngsgpu train export {input:q} --out {output:q} 2> {log:q}"


rule export_model:
    input:
        config["results"] + "/all.npz",
    output:
        config["model"],
    log:
        config["results"] + "/logs/export/all.log",
    benchmark:
        config["results"] + "/benchmarks/export/all.tsv"
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    shell:
        "ngsgpu train export {input:q} --out {output:q} 2> {log:q}"
