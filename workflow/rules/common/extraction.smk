# Reads of taxa, by the calls of a sample: which there are, and how they are asked for. Functions and
# constants only; the rules are in extract.smk.

EXTRACTED = config["extract"]["subsets"]


wildcard_constraints:
    subset=one_of(EXTRACTED),


def takes_tree(subset):
    """Whether the taxa below those named count, too: for that the database's tree is needed."""
    own = EXTRACTED[subset]
    return own["with_children"] and any([*own["taxon"], *own["exclude"]])


def extractions():
    """Samples, databases and names of subsets: an extraction each."""
    return [
        (name, database, subset)
        for name in STUDY
        for database in databases_of(name)
        for subset, own in EXTRACTED.items()
        if own["database"] in (None, database)
    ]


def extracted_reads():
    """The files of all extractions."""
    return [
        f"results/{name}/extract/{database}/{subset}/{file}"
        for name, database, subset in extractions()
        for file in (
            *(MATE_FILES if STUDY[name].second else ["reads.fastq.gz"]),
            "stats.json",
        )
    ]


MATE_FILES = ["R1.fastq.gz", "R2.fastq.gz"]


def classified_first(wildcards):
    """The first mates, or single reads, that were classified: a file a lane."""
    return [lane[0] for lane in classified_lanes(wildcards.sample)]


def classified_second(wildcards):
    """The second mates that were classified: a file a lane."""
    return [lane[1] for lane in classified_lanes(wildcards.sample)]


def tree_of(wildcards):
    """The database with the tree of taxa as a list of one or no manifest."""
    return [manifest_of(wildcards)] if takes_tree(wildcards.subset) else []


def extraction_options(wildcards, input):
    """Options of ``ngsgpu extract`` that say whose reads are wanted."""
    own = EXTRACTED[wildcards.subset]
    words = [f"--taxon {','.join(map(str, own['taxon']))}"]
    if own["exclude"]:
        words.append(f"--exclude {','.join(map(str, own['exclude']))}")
    if input.tree:
        folder = Path(str(listed(input.tree)[0])).parent
        words.append(f"--with-children -d {shlex.quote(str(folder))}")
    if own["invert"]:
        words.append("--invert")
    return " ".join(words)


def wrong_extractions():
    """Say what is wrong with the subsets in the config."""
    for subset, own in EXTRACTED.items():
        wanted = [own["database"]] if own["database"] else list(DATABASES)
        if own["database"] and own["database"] not in DATABASES:
            yield f"'{subset}': there is no database '{own['database']}'"
        elif not DATABASES:
            yield f"'{subset}': the config names no databases, so nothing is classified"
        for database in wanted if takes_tree(subset) else []:
            if database in BUILT and not BUILT[database].taxonomy:
                yield (
                    f"'{subset}': the database '{database}' has no taxonomy; set with_children to "
                    "false, or name another database"
                )
    for name in dict.fromkeys(name for name, _, _ in extractions()):
        if classified_reads(name) == MERGED:
            yield (
                f"sample '{name}' is classified as merged reads and pairs, which have no common "
                "files; set classify_reads to raw or corrected"
            )


refuse("the config's extract.subsets", [*wrong_extractions()])
