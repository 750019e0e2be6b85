# What a reproduction of a published comparison runs: which programs on which reads, and what it sets
# their figures beside. The command lines are those of the benchmarks (benchmarks/peers). Functions
# and constants only; the rules are in reproduce.smk and under peers/.

import importlib.util
import shutil
import sys

REPRODUCE = config["reproduce"]
REPRODUCED = REPRODUCE["stage"]
# What judges a program's output, by stage.
JUDGED = {
    "correct": "correction",
    "merge": "merging",
    "extend": "extension",
    "classify": "classification",
}
PLACE = "results/reproduce"


def with_module(path):
    """A file of Python that imports the standard library only, as a module."""
    name = f"ngsgpu_peers_{Path(path).stem}"
    if name not in sys.modules:
        # What Snakemake gives is no plain string, which compiled code would have to keep.
        spec = importlib.util.spec_from_file_location(name, str(path))
        # Data classes look up their module by its name.
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def peers():
    """The command lines of all programs but the classifiers."""
    return with_module(workflow.source_path("../../../benchmarks/peers/commands.py"))


def classifiers():
    """The command lines of the classifiers."""
    return with_module(workflow.source_path("../../../benchmarks/peers/classifiers.py"))


def programs_of_stage():
    """All programs of the stage by name."""
    if REPRODUCED == "none":
        return {}
    if REPRODUCED == "classify":
        return {program.name: program for program in classifiers().PROGRAMS}
    return peers().COMMANDS[REPRODUCED]


def programs_wanted():
    """The programs that the config names, or all of the stage.

    Raises:
        WorkflowError: the stage has no such program.
    """
    known = programs_of_stage()
    wanted = REPRODUCE["programs"] or list(known)
    if unknown := sorted(set(wanted) - set(known)):
        raise WorkflowError(
            f"reproduce.programs: {', '.join(unknown)} is no program of the stage "
            f"'{REPRODUCED}'; there are {', '.join(known)}"
        )
    return {name: known[name] for name in wanted}


def is_installed(program):
    """Whether a program can be run: found, or in a conda environment that is made for it."""
    makes = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    return bool(makes and program.environment) or program.path is not None


WANTED = programs_wanted()
PROGRAMS = {name: own for name, own in WANTED.items() if is_installed(own)}


def community_sample():
    """The reads of the community that the config describes."""
    own = REPRODUCE["community"]
    if "name" not in own:
        return {}
    folder = f"{PLACE}/community"
    return {
        own["name"]: Sample(
            own["name"],
            first=[f"{folder}/R1.fastq.gz"],
            second=[f"{folder}/R2.fastq.gz"],
            truth=f"{folder}/truth.tsv",
        )
    }


SETS = STUDY | community_sample()


wildcard_constraints:
    set=one_of(SETS),
    program=one_of({*programs_of_stage(), "ngsgpu", "konnector", "uncorrected"}),


def version_command(wildcards):
    """What asks a program for its version."""
    return programs_of_stage()[wildcards.program].version


def peer_environment(wildcards):
    """Environment of a program; those without one are taken from the PATH."""
    own = programs_of_stage()[wildcards.program].environment
    return f"../../../envs/{own}.yaml" if own else None


def is_ours(wildcards):
    """Whether a program is ngsgpu."""
    return wildcards.program.startswith("ngsgpu")


def peer_gpus(wildcards):
    """GPUs of a program's job."""
    return gpus(REPRODUCED) if REPRODUCED != "none" and is_ours(wildcards) else 0


def whole_machine(wildcards):
    """All threads, whatever a program uses: side by side, two would measure each other."""
    return max(REPRODUCE["threads"], workflow.cores or 0)


def set_reference(wildcards):
    """The genome of a set as a list of one or no path."""
    own = SETS[wildcards.set].reference
    return [own] if own else []


def work_of(wildcards):
    """A program's options; the shell that runs it knows the genome's size and the coverage."""
    shortest = longest = 0
    if own := DATASETS.get(wildcards.set):
        # Kallenborn (2024), section 9.2.
        spread = 4 * own.insert_sd
        shortest = round(max(2 * own.read_length, own.insert_mean - spread))
        longest = round(own.insert_mean + spread)
    return peers().Work(
        "$genome",
        "$coverage",
        REPRODUCE["threads"],
        "cuda" if peer_gpus(wildcards) else "cpu",
        shortest,
        longest,
        REPRODUCE["mem_mb"] // 1024,
        REPRODUCE["bloom"],
    )


def peer_command(wildcards):
    """What a shell runs in the program's folder, after it has read the facts."""
    job = programs_of_stage()[wildcards.program].job(work_of(wildcards))
    return job.command + (f" > {job.output}" if job.output else "")


def peer_outputs(wildcards, input):
    """A program's outputs below its folder, for the shell, which expands them."""
    job = programs_of_stage()[wildcards.program].job(work_of(wildcards))
    names = [job.output] if job.output else job.outputs
    return [f"{input.run}/{name}" for name in names]


def compiled(wildcards):
    """Our kernels are compiled before a measurement."""
    if not is_ours(wildcards):
        return []
    return [f"{PLACE}/{wildcards.set}/{wildcards.program}/compiled"]


# The reads as they were, in the comparison of assemblies.
UNCORRECTED = "uncorrected"


def assembled_arms():
    """Whose reads are assembled, if the config wants assemblies."""
    wanted = REPRODUCED == "correct" and REPRODUCE["assemble"]
    return [UNCORRECTED, *PROGRAMS] if wanted else []


def assembled_mate(wildcards, mate):
    """Reads of a mate that are assembled."""
    if wildcards.program == UNCORRECTED:
        return f"{PLACE}/{wildcards.set}/reads/r{mate}.fq"
    return f"{PLACE}/{wildcards.set}/{wildcards.program}/corrected_{mate}.fq"


def mapped_output(wildcards):
    """What of a program is judged on the reference: both corrected mates, or merged reads."""
    names = (
        ["merged.fq"] if REPRODUCED == "merge" else ["corrected_1.fq", "corrected_2.fq"]
    )
    return [f"{PLACE}/{wildcards.set}/{wildcards.program}/{name}" for name in names]


def judged_files(own):
    """What judges a program's output on a set: by the truth, or by the reference alone."""
    on_reference = own not in DATASETS and SETS[own].reference and SETS[own].second
    mapped = ["mapped.json"] * bool(REPRODUCED in ("correct", "merge") and on_reference)
    if REPRODUCED != "correct":
        return [f"{JUDGED[REPRODUCED]}.json", *mapped]
    if own in DATASETS:
        return ["correction.json"]
    return ["kmers.json"] * bool(SETS[own].reference) + mapped


def reproduction_files():
    """Files of the figures: keys, file."""
    found = []
    for name in PROGRAMS:
        for own in SETS:
            for file in judged_files(own):
                found.append((f"{own}\t{name}\tjudged", f"{PLACE}/{own}/{name}/{file}"))
        if REPRODUCED == "classify":
            database = f"{PLACE}/databases/{name}"
            found.append((f"\t{name}\tdatabase", f"{database}/size.json"))
            found.append((f"\t{name}\tversion", f"{database}/version.txt"))
        else:
            found.append((f"\t{name}\tversion", f"{PLACE}/versions/{name}.txt"))
    if assembled_arms():
        found += [
            (f"{own}\t\tassemblies", f"{PLACE}/{own}/quast/report.tsv")
            for own in SETS
            if own not in DATASETS and SETS[own].reference
        ]
    if has_opal():
        found.append(("\tOPAL\topal", f"{PLACE}/community/opal.tsv"))
    return found


def reproduction_benchmarks():
    """Benchmarks beside the figures: keys, file."""
    found = [
        (f"{own}\t{name}\trun", f"run_program/{own}/{name}.tsv")
        for own in SETS
        for name in PROGRAMS
    ]
    if REPRODUCED == "classify":
        found += [
            (f"\t{name}\tbuild", f"build_program/{name}.tsv") for name in PROGRAMS
        ]
    return found


REPRODUCTION = ["results/reproduction.html", "results/reproduction.json"]


def described_set(name):
    """What the page says of a set of reads; files by their names alone."""
    if name in community_sample():
        own = REPRODUCE["community"]
        parameters = {key: own[key] for key in own if key not in ("name", "genomes")}
        return {"name": name, "kind": "simulated", "parameters": parameters}
    said = described(SETS[name])
    parameters = {
        key: ", ".join(Path(path).name for path in str(value).split(", "))
        for key, value in said["parameters"].items()
    }
    return said | {"parameters": parameters}


def reproduction_text():
    """The description of the page's content, as JSON, beside the figures."""
    return json.dumps(
        {
            "title": config["title"],
            "source": REPRODUCE["source"],
            "scale": REPRODUCE["scale"],
            "stage": REPRODUCED,
            "threads": REPRODUCE["threads"],
            "beside": REPRODUCE["beside"],
            "counterparts": REPRODUCE["counterparts"],
            "programs": [
                {"name": name, "title": own.title, "is_installed": name in PROGRAMS}
                for name, own in WANTED.items()
            ],
            "sets": [described_set(name) for name in SETS],
        }
    )


def reproduction_lines(wildcards, input, output):
    """The files of the page, a line each: set, program, what, file."""
    benchmarks = Path(output.html).parent / "benchmarks"
    figures = zip(reproduction_files(), input.figures, strict=True)
    return [
        *(f"{keys}\t{path}" for (keys, _), path in figures),
        *(f"{keys}\t{benchmarks / path}" for keys, path in reproduction_benchmarks()),
    ]


# Classifiers and the community.
REFERENCES = f"{PLACE}/references"


def community(key):
    """A file that the config names for the community; none without one."""
    path = REPRODUCE["community"].get(key)
    return [given(path)] if path else []


def composition():
    """Rows of the community's composition: a genome each."""
    if not (paths := community("composition")):
        return []
    rows = [cells for _, cells in sheet_lines(paths[0])]
    return [dict(zip(rows[0], cells)) for cells in rows[1:]]


def community_genomes(wildcards):
    """Files of the community's genomes."""
    folder = with_data(REPRODUCE["community"]["genomes"])
    return [given(f"{folder}/{row['genome']}") for row in composition()]


def community_options(wildcards):
    """Options of draw_community.py."""
    own = REPRODUCE["community"]
    options = {
        "genomes": with_data(own["genomes"]),
        "pairs": own["pairs"],
        "profile": own["art_profile"],
        "length": own["read_length"],
        "insert": own["insert_mean"],
        "deviation": own["insert_sd"],
        "seed": own["seed"],
    }
    return " ".join(
        f"--{key} {shlex.quote(str(value))}" for key, value in options.items()
    )


def peer_references(wildcards):
    """FASTA files that classifiers build from: all that are named but genomes left out."""
    left_out = {row["genome"] for row in composition() if row["in_database"] != "yes"}
    files = [
        path
        for place in REPRODUCE["references"]
        for path in files_in(with_data(place), REFERENCE_ENDINGS)
    ]
    return [path for path in files if Path(path).name not in left_out]


def peer_map(wildcards):
    """The table of sequence names and taxids."""
    return given(with_data(REPRODUCE["map"]))


def peer_taxonomy_folder(wildcards):
    """The folder of the taxonomy."""
    return given(with_data(REPRODUCE["taxonomy"]))


def peer_taxonomy(wildcards):
    """The files of the taxonomy."""
    return files_in(with_data(REPRODUCE["taxonomy"]), TAXONOMY_FILES)


def classified_inputs(wildcards):
    """What the classifiers' command lines are made of: names in the folder they run in."""
    own = SETS[wildcards.set] if "set" in wildcards.keys() else None
    reads = ["r1.fq", "r2.fq"][: 2 if own and own.second else 1]
    inside = Path("references")
    return classifiers().Inputs(
        (inside / "plain.fna",),
        inside / "labelled.fna",
        inside / "taxonomy",
        inside / "map.tsv",
        tuple(map(Path, reads)),
        REPRODUCE["threads"],
        "cuda" if peer_gpus(wildcards) else "cpu",
    )


def build_commands(wildcards):
    """What builds a program's database."""
    commands = programs_of_stage()[wildcards.program].build(
        classified_inputs(wildcards)
    )
    return " && ".join(shlex.join(command) for command in commands)


def classify_command(wildcards):
    """What classifies the reads."""
    return shlex.join(
        programs_of_stage()[wildcards.program].classify(classified_inputs(wildcards))
    )


def kept_files(wildcards):
    """Pattern of the files of a program's database."""
    return programs_of_stage()[wildcards.program].kept


def calls_of(wildcards):
    """A program's file of a line for each read."""
    return programs_of_stage()[wildcards.program].calls


def of_community(file):
    """A file of each program's classification of the community."""
    names = community_sample() if REPRODUCED == "classify" else {}
    return [f"{PLACE}/{own}/{name}/{file}" for own in names for name in PROGRAMS]


def community_profiles(wildcards):
    """The profiles that OPAL scores."""
    return of_community("calls.profile")


def community_judged(wildcards):
    """Our own evaluations of the same calls."""
    return of_community("classification.json")


def has_opal():
    """Whether OPAL scores the community: found, or in an environment made for it."""
    makes = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    return bool(community_sample()) and (makes or bool(shutil.which("opal.py")))
