# The study's manifest, which the report is made from. Functions and constants only.

import json
from dataclasses import asdict

from snakemake import __version__ as SNAKEMAKE_VERSION

# The bare number on standard output, or failure. ART prints it with its help only, and exits with 1.
VERSION_COMMANDS = {
    "abyss": "PATH=$PATH:/usr/lib/abyss konnector --version | grep -o -m 1 '[0-9][0-9.]*'",
    "bwa": "(bwa 2>&1 || true) | grep -o -m 1 'Version: [0-9.]*' | sed 's/Version: //'",
    "art": "(art_illumina --help || true) | grep -o -m 1 'Version [0-9.]*' | sed 's/Version //'",
    "fastp": "fastp --version 2>&1 | grep -o '[0-9][0-9.]*$'",
    "megahit": "megahit --version | grep -o '[0-9][0-9.]*$'",
    "minimap2": "minimap2 --version | grep -o '^[0-9][0-9.]*'",
    "krona": "ktImportText | grep -o -m 1 'KronaTools [0-9.]*' | sed 's/KronaTools //'",
    "multiqc": "multiqc --version | grep -o '[0-9][0-9.]*$'",
    "ngsgpu": "ngsgpu --version | sed 's/^ngsgpu //'",
    "quast": "quast.py --version 2>&1 | grep -o '[0-9][0-9.]*$'",
    "skesa": "skesa --version | grep -o -m 1 '[0-9][0-9.]*$'",
    "spades": "spades.py --version 2>&1 | grep -o '[0-9][0-9.]*$'",
}


def tools_used():
    """Tools that take part in this study, such as ART if something is simulated."""
    unused = {
        tool
        for tool, used in (
            ("art", DATASETS),
            ("abyss", connected()),
            *(
                (name, mapped_samples() and config["mapped"]["aligner"] == name)
                for name in ("bwa", "minimap2")
            ),
            ("fastp", trimmed_samples() and config["trim"]["engine"] == "fastp"),
            ("krona", DATABASES and draws_krona()),
            ("multiqc", config["multiqc"]),
            *(
                (engine, engine in ENGINES and assembled_samples(STUDY))
                for engine in RULE_OF_ENGINE
                if engine != "ngsgpu"
            ),
            ("quast", compared_samples(STUDY)),
        )
        if not used
    }
    return [tool for tool in sorted(VERSION_COMMANDS) if tool not in unused]


def connected():
    """Whether Konnector takes part."""
    return config["extend"]["konnector"] and config["extend"]["reads"] != "none"


def config_text():
    """What decides the results in the config, as JSON in a fixed order."""
    keys = (
        "genomes",
        "groups",
        "simulate",
        "trim",
        "deplete",
        "correct",
        "merge",
        "extend",
        "database",
        "classify",
        "kmers",
        "mapped",
        "unitigs",
        "assemble",
        "quast",
    )
    return json.dumps({key: config[key] for key in keys}, sort_keys=True)


def described(sample):
    """What the report says of a sample."""
    own = DATASETS.get(sample.name)
    if own:
        said = {key: value for key, value in asdict(own).items() if value is not None}
        said |= said.pop("settings")
        return {"name": said.pop("name"), "kind": "simulated", "parameters": said}
    files = SEQUENCED[sample.name]
    parameters = {
        "lanes": len(files.first),
        "files": ", ".join(map(str, [*files.first, *files.second])),
    }
    if sample.reference:
        parameters["reference"] = str(sample.reference)
    if sample.group:
        parameters["group"] = sample.group
    parameters |= sample.settings
    return {"name": sample.name, "kind": "real", "parameters": parameters}


def searched(database):
    """Whose statistics a database's jobs may have: its partitions, and the batch of each sample."""
    batches = {name: BATCH_OF[database, name] for name in samples_of(database)}
    return {"partitions": DATABASES[database].partitions, "batches": batches}


def study_text():
    """What the report says of the study, as JSON; the results come in when they are made."""
    return json.dumps(
        {
            "title": config["title"],
            "config": json.loads(config_text()),
            "snakemake": SNAKEMAKE_VERSION,
            "commit": commit_of(CHECKOUT),
            "samples": [described(sample) for _, sample in sorted(STUDY.items())],
            "searched": {database: searched(database) for database in DATABASES},
        }
    )


def results_of(name):
    """What the report shows of a sample.

    Yields the keys in the manifest, the file in the sample's folder, and the rule that makes it.
    """
    has_truth = name in DATASETS
    if trimmed_samples([name]):
        yield "trim", "trim/fastp.json", "trim_reads"
    if name in DEPLETED:
        yield "deplete", "deplete/stats.json", "deplete_reads"
    if corrected_samples([name]):
        yield "correct", "correct/stats.json", "correct_reads"
    for arm in ARMS:
        if checked_samples([name]):
            yield f"qc/{arm}", f"qc/{arm}.fastp.json", "check_reads"
        yield f"kmers/{arm}", f"kmers/{arm}.tsv", "count_kmers"
        if config["unitigs"]["enabled"]:
            yield f"unitigs/{arm}", f"unitigs/{arm}/stats.json", "build_unitigs"
        if assembled_samples([name]):
            folder = assembly_folder(ENGINES[0], arm)
            yield f"contigs/{arm}", f"{folder}/contigs.fasta", RULE_OF_ENGINE[
                ENGINES[0]
            ]
    if compared_samples([name]):
        yield "quast", "quast/report.tsv", "evaluate_assemblies"
    if engines_compared([name]):
        for kind, key in (("tsv", "quast_engines"), ("html", "quast_curves")):
            yield key, f"quast_engines/report.{kind}", "evaluate_engines"
    if has_truth and corrected_samples([name]):
        yield "evaluation", "evaluate/correction.json", "evaluate_correction"
    if name in merged_samples():
        yield "merge", "merge/stats.json", "merge_pairs"
        if has_truth:
            yield "merging", "evaluate/merging.json", "evaluate_merging"
    if name in mapped_samples():
        yield "mapped", "evaluate/mapped.json", "evaluate_mapped"
    if name in extended_samples():
        yield "extend", "extend/stats.json", "extend_pairs"
        if has_truth:
            for program in extenders():
                file = f"evaluate/extension_{program}.json"
                yield f"extension/{program}", file, "evaluate_extension"
        if extended_uses() and compared_samples([name]):
            file = "quast_extended/report.tsv"
            yield "quast_extended", file, "evaluate_extended_assemblies"
    yield from classification_of(name)


def classification_of(name):
    """What the report shows of a sample's classification, as ``results_of`` does."""
    files = {
        "report": f"{name}.kraken2.report.txt",
        "abundance": "abundance.tsv",
        "coverage": "coverage.tsv",
        "evidence": "evidence.tsv",
        "stats": "stats.json",
    }
    for database in databases_of(name):
        keys, folder = f"classification/{database}", f"classify/{database}"
        for key, file in files.items():
            yield f"{keys}/{key}", f"{folder}/{file}", "merge_candidates"
        if DATABASES[database].taxonomy and STUDY[name].truth:
            file = f"{folder}/evaluation.json"
            yield f"{keys}/evaluation", file, "evaluate_classification"


def study_results():
    """What the report shows: sample, keys in the manifest, and file of every result."""
    of_samples = [
        (name, keys, f"results/{name}/{file}")
        for name in sorted(STUDY)
        for keys, file, _ in results_of(name)
    ]
    # A database is nobody's: its line has no sample.
    return of_samples + [
        ("", f"databases/{name}", f"results/databases/{name}/plan.json")
        for name in DATABASES
    ]


def study_benchmarks():
    """Whose run times the report shows: sample, name in the manifest, and file of every job."""
    jobs = set()
    for name in sorted(STUDY):
        for keys, _, maker in results_of(name):
            if chained(name, keys):
                maker = "chain_reads"
            part = keys.split("/")[1:2]
            if keys.startswith("classification/"):
                jobs.add((name, f"{maker} ({part[0]})", f"{maker}/{part[0]}/{name}"))
            elif part:
                jobs.add((name, f"{maker} ({part[0]})", f"{maker}/{name}/{part[0]}"))
            else:
                jobs.add((name, maker, f"{maker}/{name}"))
    for name in assembled_samples(STUDY):
        jobs |= {
            (name, f"{rule} ({arm})", f"{rule}/{name}/{arm}")
            for rule in (RULE_OF_ENGINE[engine] for engine in ENGINES)
            for arm in ARMS
        }
    for name, dataset in DATASETS.items():
        jobs |= {
            (name, rule, f"{rule}/{name}") for rule in ("cut_reference", "join_reads")
        }
        chunks, kinds = range(dataset.chunks), ("truth", "alignments")
        jobs |= {(name, "simulate_reads", f"simulate_reads/{name}/{n}") for n in chunks}
        jobs |= {(name, "join_truth", f"join_truth/{name}/{kind}") for kind in kinds}
    return sorted(jobs)


def study_files(wildcards, input, output):
    """The files of the report for study_manifest.py, a line each.

    Results stand under the names that Snakemake gave the input: a workflow that takes these rules
    as a module may keep its results elsewhere. Benchmarks are no rule's input; they lie beside.
    """
    benchmarks = Path(output.manifest).parent / "benchmarks"
    lines = [
        (name, keys, path)
        for (name, keys, _), path in zip(STUDY_RESULTS, input.results, strict=True)
    ]
    lines += [
        (name, f"benchmarks/{maker}", f"{benchmarks / job}.tsv")
        for name, maker, job in study_benchmarks()
    ]
    return ["\t".join(line) for line in lines]


STUDY_RESULTS = study_results()
