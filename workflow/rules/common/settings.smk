# How each sample is treated: what its sheet says, else its group in the config, else the config.
# Functions only, and the check of what the sheets say.

MERGED = "merged"


def setting(name, key, default):
    """What a sample's row says of a column; else its group; else the default."""
    sample = STUDY.get(name)
    if sample is None:
        return default
    group = config["groups"].get(sample.group, {})
    return sample.settings.get(key, group.get(key, default))


def extra_of(name, stage):
    """Further options of a stage's command for a sample, quoted for the shell."""
    own = setting(name, f"{stage}_extra", None)
    if own is None:
        return config[stage]["extra"]
    return "" if own == "none" else shlex.join(shlex.split(own))


def extra(stage):
    """Function of a job: further options of a stage's command for its sample."""
    return lambda wildcards: extra_of(wildcards.sample, stage)


def correct_settings():
    """Options of ``ngsgpu correct`` that are not its defaults, each after a space."""
    chosen = config["correct"]
    flags = " --method spectrum" if chosen["method"] == "spectrum" else ""
    flags += "".join(
        f" --{key}" for key in ("classic", "mask", "quality") if chosen[key]
    )
    variants = chosen["keep_variants"]
    return flags + ("" if variants == "auto" else f" --keep-variants {variants}")


def databases_of(name):
    """Names of the databases that a sample is classified with, in the order of their sheet."""
    wanted = setting(name, "classify_databases", "").split() or list(DATABASES)
    return [database for database in DATABASES if database in wanted]


def samples_of(database):
    """Names of the samples that are classified with a database, in the order of their sheets."""
    return [name for name in STUDY if database in databases_of(name)]


def classified_reads(name):
    """Which reads of a sample are classified; merged ones only where there are pairs to merge."""
    reads = setting(name, "classify_reads", config["classify"]["reads"])
    if reads == MERGED and not STUDY[name].second:
        return config["merge"]["reads"]
    return reads


def classified_lanes(name):
    """The files of a sample's classified reads: a list a lane, of one file or of both mates'."""
    reads = classified_reads(name)
    if reads == MERGED:
        folder = f"results/{name}/merge"
        unmerged = [f"{folder}/unmerged_R1.fastq.gz", f"{folder}/unmerged_R2.fastq.gz"]
        return [[f"{folder}/merged.fastq.gz"], unmerged]
    first, second = arm_files(name, reads)
    return [list(lane) for lane in (zip(first, second) if second else zip(first))]


def wrong_settings(name):
    """Say what is wrong with how a sample is to be treated."""
    sample = STUDY[name]
    if sample.group is not None and sample.group not in config["groups"]:
        own = meant(sample.group, config["groups"])
        hint = (
            f"did you mean {own}?"
            if own
            else "describe it under 'groups' in the config"
        )
        yield f"column group: the config has no group '{sample.group}'; {hint}"
    wanted = setting(name, "classify_databases", "").split()
    for database in wanted if wanted != ["none"] else []:
        if database not in DATABASES:
            own = meant(database, DATABASES)
            known = (
                f"there are {', '.join(DATABASES)}" if DATABASES else "there is none"
            )
            hint = f"did you mean {own}?" if own else known
            yield f"classify_databases: no database '{database}'; {hint}"
    for stage in ("classify", "correct", "merge", "extend"):
        try:
            extra_of(name, stage)
        except ValueError as error:
            yield f"{stage}_extra: the options cannot be read ({error}); close all quotes"
    reads = setting(name, "classify_reads", config["classify"]["reads"])
    if not databases_of(name):
        return
    if reads == CORRECTED and CORRECTED not in ARMS:
        yield "classify_reads: 'corrected', but correct.enabled is false"
    if reads == MERGED and config["merge"]["reads"] == "none":
        yield "classify_reads: 'merged', but merge.reads is 'none'"
    if sample.settings.get("classify_reads") == MERGED and not sample.second:
        yield "classify_reads: 'merged', but the reads have no mates"


def check_settings():
    """Refuse settings of samples that cannot be.

    Raises:
        WorkflowError: names the samples, and what is wrong.
    """
    refuse(
        "the settings of samples (sheets, or groups in the config)",
        [f"sample '{name}', {what}" for name in STUDY for what in wrong_settings(name)],
    )


check_settings()
