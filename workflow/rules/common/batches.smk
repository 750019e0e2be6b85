# Which samples a job takes together through a partition, so that it opens the partition once for all
# of them. Functions and constants only.
#
# A batch is written down before it is classified (rule list_samples), and a sample stays in its batch
# for good: a sample that is added later gets into a new one, and so nothing that its older fellows
# depend on changes. A sample gets into a new batch, too, if it has to be classified again and its
# fellows have not: its reads or options have changed, or its calls were deleted. A mistake here costs
# time, never a result: what has to be done again is decided by Snakemake, from the reads, the
# database and the options of each sample.

from collections import Counter

# How a workflow that takes this one as a module moves its files. Kept, since functions of jobs are
# called when all files have been read, and the workflow's modifier is by then that of the outermost.
MODIFIER = workflow.modifier


def placed(path):
    """Where a file of the results is: a workflow that takes this one as a module may move them."""
    return Path(str(MODIFIER.modify_path(path)))


def changed_at(path):
    """When a file, or a link to it, was changed, in nanoseconds; 0 if it is not there."""
    try:
        return max(Path(path).stat().st_mtime_ns, Path(path).lstat().st_mtime_ns)
    except OSError:
        return 0


def all_reads(name):
    """Files of a sample's reads before correction, and what these are made of.

    Reads as sequenced are new, or others, when trimmed ones are still to come.
    """
    stages = [own[name] for own in (STUDY, TRIMMED, SEQUENCED) if name in own]
    return list(
        dict.fromkeys(path for own in stages for path in [*own.first, *own.second])
    )


def treatment(name):
    """A checksum of what the candidates of a sample depend on, besides what is in its reads."""
    reads = classified_reads(name)
    before = {RAW: [], CORRECTED: ["correct"], MERGED: ["merge"]}[reads]
    if reads == MERGED and config["merge"]["reads"] == CORRECTED:
        before.append("correct")
    options = [extra_of(name, stage) for stage in ("classify", *before)]
    own = [reads, *options, *map(str, all_reads(name))]
    return f"{zlib.crc32(json.dumps(own).encode()):08x}"


def rows_of(sheet):
    """The rows of a batch's sheet: name, files of both mates, treatment.

    Raises:
        FileNotFoundError: it is not written yet.
    """
    lines = Path(sheet).read_text().split("\n")[1:]
    return [line.split("\t") for line in lines if line]


def recorded_rows(database, batch):
    """The rows of a batch as it was written down; none if it was not."""
    sheet = placed(f"results/databases/{database}/batches/{batch}.tsv")
    return rows_of(sheet) if sheet.exists() else []


def recorded_batches(database):
    """The batch and the treatment of each sample, as written down; its latest if it had several."""
    folder = placed(f"results/databases/{database}/batches")
    sheets = sorted(folder.glob("[0-9][0-9][0-9][0-9].tsv"))
    return {
        row[0]: (sheet.stem, row[-1])
        for sheet in sheets
        for row in recorded_rows(database, sheet.stem)
    }


def is_rebuilt(database, newest_record):
    """Whether all samples have to be classified again, since the database has changed."""
    own = DATABASES[database]
    if own.path is not None:
        return changed_at(Path(own.path) / "manifest.json") > newest_record
    # Sources that were touched alone make no new plan: Snakemake compares their checksums. So batches
    # that were written down since count as well, or all samples would be classified ever again.
    built = changed_at(placed(f"results/databases/{database}/db/manifest.json"))
    newest = max(built, newest_record)
    return any(changed_at(path) > newest for path in sources_of(database))


def kept_batches(database, record):
    """The samples that stay in the batches in which they were recorded."""
    folder = placed(f"results/databases/{database}")
    written = {
        batch: changed_at(folder / "batches" / f"{batch}.tsv")
        for batch, _ in record.values()
    }
    if is_rebuilt(database, max(written.values(), default=0)):
        return {}
    kept, called = {}, Counter()
    has_calls = {}
    for name in samples_of(database):
        batch, own = record.get(name, (None, None))
        reads = [file for lane in classified_lanes(name) for file in lane]
        reads += all_reads(name)
        if own == treatment(name) and all(
            changed_at(placed(file)) <= written[batch] for file in reads
        ):
            kept[name] = batch
            calls = call_files(name, database)
            has_calls[name] = all(placed(file).exists() for file in calls)
            called[batch] += has_calls[name]
    return {
        name: batch
        for name, batch in kept.items()
        if has_calls[name] or not called[batch] or is_waiting(database, batch)
    }


def is_waiting(database, batch):
    """Whether candidates of a batch are there, and calls are still to be made of them."""
    folder = placed(f"results/databases/{database}/candidates/{batch}")
    return folder.is_dir() and any(folder.iterdir())


def batches_of(database):
    """The samples of each batch, by its number."""
    record = recorded_batches(database)
    if workflow.is_main_process:
        kept = kept_batches(database, record)
    else:
        # A job elsewhere: what the main process has decided is written down by now.
        kept = {
            name: record[name][0] for name in samples_of(database) if name in record
        }
    batches = {}
    for name, batch in kept.items():
        batches.setdefault(batch, []).append(name)
    new = {}
    for name in samples_of(database):
        if name not in kept:
            new.setdefault(extra_of(name, "classify"), []).append(name)
    number = max((int(batch) for batch, _ in record.values()), default=0)
    most = config["classify"]["batch"]
    for names in new.values():
        for begin in range(0, len(names), most):
            number += 1
            batches[f"{number:04d}"] = names[begin : begin + most]
    return batches


BATCHES = {database: batches_of(database) for database in DATABASES}
BATCH_OF = {
    (database, name): batch
    for database, batches in BATCHES.items()
    for batch, names in batches.items()
    for name in names
}
WAITING = {
    (database, batch)
    for database, batches in BATCHES.items()
    for batch in batches
    if is_waiting(database, batch)
}


def batch_reads(wildcards):
    """The reads of a batch: all samples, lanes and mates in turn."""
    names = BATCHES[wildcards.database][wildcards.batch]
    lanes = [lane for name in names for lane in classified_lanes(name)]
    return [file for lane in lanes for file in lane]


def left_reads(wildcards):
    """The reads of samples that have left a batch since it was written down.

    That they are no longer read is no reason to do anything again for those that stay.
    """
    names = BATCHES[wildcards.database][wildcards.batch]
    rows = recorded_rows(wildcards.database, wildcards.batch)
    files = [file for name, *own, _ in rows if name not in names for file in own]
    return [ancient(given(file)) for file in files if file and Path(file).exists()]


def batch_names(wildcards, input):
    """The samples of a batch. They depend on the input, so a change is no reason to run again."""
    return BATCHES[wildcards.database][wildcards.batch]


def batch_rows(wildcards, input):
    """The sheet of a batch, for `ngsgpu classify`: a row a lane."""
    files = iter(listed(input.reads))
    rows = ["sample\tfastq_1\tfastq_2\ttreatment"]
    for name in BATCHES[wildcards.database][wildcards.batch]:
        for lane in classified_lanes(name):
            first, second, *_ = [*(next(files) for _ in lane), ""]
            rows.append(f"{name}\t{first}\t{second}\t{treatment(name)}")
    return rows


def batch_sheet(wildcards):
    """The sheet of a batch; once its samples have their calls, a new sheet changes nothing."""
    sheet = f"results/databases/{wildcards.database}/batches/{wildcards.batch}.tsv"
    is_open = (wildcards.database, wildcards.batch) in WAITING
    return sheet if is_open else ancient(sheet)


def batch_extra(wildcards):
    """Further options of ``ngsgpu classify``, which the samples of a batch share."""
    return extra_of(BATCHES[wildcards.database][wildcards.batch][0], "classify")


def server_of_partition(wildcards):
    """The socket of the server that has a job's partition open, if there is to be one."""
    server = f"results/databases/{wildcards.database}/served/{wildcards.partition}"
    return [server] if config["classify"]["server"] else []


def unless_served(own, served):
    """What a job of classification takes: ``served`` if a server does its work."""
    return served if config["classify"]["server"] else own


def server_option(wildcards, input):
    """Option of ``ngsgpu classify`` for the server of a job's partition."""
    return f"--server={shlex.quote(str(input.server))}"


def candidates_of_batches(wildcards):
    """Folders with the candidates of a sample, one a partition of the database."""
    return expand(
        "results/databases/{database}/candidates/{batch}/{partition}",
        database=wildcards.database,
        batch=BATCH_OF[wildcards.database, wildcards.sample],
        partition=partitions_of(wildcards.database),
    )


def candidate_files(wildcards, input):
    """The candidates of a sample in these folders."""
    return [f"{folder}/{wildcards.sample}.cand" for folder in listed(input.candidates)]


def sample_reads(wildcards):
    """The reads of a sample that are classified: they decide whether its calls are out of date."""
    return [file for lane in classified_lanes(wildcards.sample) for file in lane]
