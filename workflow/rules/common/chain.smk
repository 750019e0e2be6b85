# Which stages of a sample are one job (`chain` in the config), by `ngsgpu run`, in which the reads go from
# stage to stage in memory. Functions and constants only.
#
# The outputs are those of the stages' own rules, so that nothing else depends on who made them. A job of
# several stages makes all of their outputs anew; but a changed option of a later stage is no reason to do
# earlier ones again. So a chain writes down the options of its stages beside its outputs, and when the
# workflow starts, each sample's chain keeps those of its leading stages whose options are still the same
# and whose outputs are as the chain left them; what follows is made from these by the stages' own rules.
# Only when the first stage has to run again does the whole chain.
#
# This decides who makes an output. Whether it has to be made is decided by Snakemake, as ever: the rule
# that keeps the leading stages has the code, the inputs and the options that it had when it made them,
# and a stage's own rule has others. A mistake here costs time, never a result.

import json
import os
import shlex
import string
from dataclasses import dataclass
from itertools import pairwise

# Outputs of the stages in the sample's folder, by the options of their commands that name them.
CHAIN_OUTPUTS = {
    "trim": {"json": "trim/fastp.json"},
    "deplete": {"stats": "deplete/stats.json"},
    "correct": {"stats": "correct/stats.json"},
    "extend": {
        "out": "extend/ngsgpu/extended.fastq.gz",
        "remaining1": "extend/ngsgpu/remaining_R1.fastq.gz",
        "remaining2": "extend/ngsgpu/remaining_R2.fastq.gz",
        "stats": "extend/stats.json",
    },
    "merge": {
        "out": "merge/merged.fastq.gz",
        "unmerged1": "merge/unmerged_R1.fastq.gz",
        "unmerged2": "merge/unmerged_R2.fastq.gz",
        "ihist": "merge/inserts.txt",
        "stats": "merge/stats.json",
    },
}
CHAIN_RECORD = "chain/stages.txt"
LETTERS = f"{string.ascii_letters}{string.digits}-_"


@dataclass(frozen=True)
class Chain:
    """Stages of a sample that are one job.

    Attributes:
        stages: in order.
        record: what is written down of them, a line a stage; of stages that were made by an earlier
            job, what that has written down, with those that are no longer its.
        keeps: whether an earlier job made them, and they are not simply what the config asks for.
    """

    stages: tuple[str, ...]
    record: tuple[str, ...]
    keeps: bool = False

    @property
    def recorded(self):
        """The stages in the record."""
        return [json.loads(line)[0] for line in self.record]


def is_on(stage):
    """Whether a stage takes part in the study."""
    own = config[stage]
    if stage == "deplete":
        return bool(HOST)
    return own["reads"] != "none" if "reads" in own else own["enabled"]


def stage_before(stage):
    """The stage whose reads a stage takes; None for those as sequenced."""
    earlier = [own for own in ("trim", "deplete") if is_on(own)]
    if stage in ("trim", "deplete"):
        earlier = ["trim"] * (stage == "deplete" and is_on("trim"))
    elif config[stage].get("reads") == CORRECTED:
        return "correct"
    return earlier[-1] if earlier else None


def not_chained(stage):
    """Why a stage can be in no chain; empty if it can."""
    if not is_on(stage):
        switch = {"deplete": "host", "extend": "reads", "merge": "reads"}
        return f"it is switched off ({stage}.{switch.get(stage, 'enabled')})"
    if stage == "trim" and config["trim"]["engine"] != "ngsgpu":
        return (
            f"trim.engine is {config['trim']['engine']}, which runs as a separate job"
        )
    return ""


def wrong_chain(stages):
    """Say what is wrong with the stages that are to be one job."""
    if stages and config["reproduce"]["stage"] != "none":
        yield "published comparisons run each program by itself; leave it empty"
    if len(stages) == 1:
        yield f"{stages[0]} alone is no chain; name two stages or more, or none"
    for stage in stages:
        if why := not_chained(stage):
            yield f"{stage}: {why}"
    for before, stage in pairwise(stages):
        own = stage_before(stage)
        if own != before and not not_chained(stage):
            taken = f"those of {own}" if own else "those as sequenced"
            yield f"{stage} cannot follow {before}: the reads that it takes are {taken}"


refuse("chain (in the config)", list(wrong_chain(config["chain"])))


def takes_part(name, stage):
    """Whether a sample goes through a stage that can be in a chain."""
    if not_chained(stage):
        return False
    if stage in ("extend", "merge"):
        return bool(STUDY[name].second)
    taking = {"trim": trimmed_samples, "deplete": lambda names: DEPLETED}
    return stage not in taking or name in taking[stage]([name])


def stage_outputs(stage, is_paired):
    """Outputs of a stage in the sample's folder, by the options that name them."""
    if stage in ("extend", "merge"):
        return CHAIN_OUTPUTS[stage]
    files = ["R1.fastq.gz", "R2.fastq.gz"] if is_paired else ["reads.fastq.gz"]
    reads = {f"out{number}": f"{stage}/{file}" for number, file in enumerate(files, 1)}
    return reads | CHAIN_OUTPUTS[stage]


def stage_options(name, stage):
    """Options of a stage's command that decide its results, for a sample."""
    own = {
        "trim": "--disable_quality_filtering --dont_eval_duplication "
        f"--report_title {shlex.quote(name)}",
        "correct": correct_settings(),
        "merge": "--flash" if config["merge"]["overlap"] == "flash" else "",
    }
    of_sample = stage in ("correct", "extend", "merge")
    extra = extra_of(name, stage) if of_sample else config[stage]["extra"]
    return f"{own.get(stage, '')} {extra}".strip()


def record_line(name, stage):
    """What is written down of a stage, a line."""
    return json.dumps([stage, stage_options(name, stage)])


def output_times(name, stage):
    """When each output of a stage was changed, 0 if it is not there."""
    for path in stage_outputs(stage, bool(STUDY[name].second)).values():
        yield changed_at(placed(f"results/{name}/{path}"))


def record_of(name):
    """Where a chain of a sample writes down its stages."""
    return placed(f"results/{name}/{CHAIN_RECORD}")


def recorded_lines(name):
    """What the last chain of a sample has written down; nothing if there was none."""
    try:
        lines = tuple(record_of(name).read_text().splitlines())
        known = all(json.loads(line)[0] in CHAIN_OUTPUTS for line in lines)
    except (OSError, ValueError, LookupError, TypeError):
        return ()
    return lines if known else ()


def kept_chain(name):
    """The leading stages of a sample's last chain that are as it left them; None if there are none."""
    record, written = recorded_lines(name), changed_at(record_of(name))
    stages, kept = Chain((), record).recorded, []
    for stage, line in zip(stages, record):
        if not takes_part(name, stage) or kept and stage_before(stage) != kept[-1]:
            break
        times = list(output_times(name, stage))
        if (
            line != record_line(name, stage)
            or not 0 < min(times) <= max(times) <= written
        ):
            break
        kept.append(stage)
    if not kept or any(
        changed_at(placed(read)) > written for read in reads_of(name, kept[0])
    ):
        return None
    whole = whole_chain(name)
    is_whole = whole and (whole.stages, whole.record) == (tuple(kept), record)
    return Chain(tuple(kept), record, keeps=not is_whole)


def whole_chain(name):
    """The chain of a sample that the config describes; None if it has but one of the stages."""
    stages = tuple(stage for stage in config["chain"] if takes_part(name, stage))
    record = tuple(record_line(name, stage) for stage in stages)
    return Chain(stages, record) if len(stages) > 1 else None


def present_chain(name):
    """The chain of a sample; None if its stages are separate jobs, or have been."""
    whole, kept = whole_chain(name), kept_chain(name)
    if kept or not whole:
        return kept
    first = whole.stages[0]
    is_recorded = first in Chain((), recorded_lines(name)).recorded
    written = changed_at(record_of(name)) if is_recorded else 0
    is_separate = any(own > written for own in output_times(name, first))
    return None if is_separate else whole


def reads_of(name, stage):
    """The reads of a sample that a stage, which is before all others of a chain, takes."""
    sample = {"trim": SEQUENCED, "deplete": TRIMMED}.get(stage, STUDY)[name]
    return [*sample.first, *sample.second]


def letter_of(chain):
    """The stages of a chain, and whether it keeps them, as a letter."""
    if chain is None:
        return LETTERS[0]
    bits = sum(1 << list(CHAIN_OUTPUTS).index(stage) for stage in chain.stages)
    return LETTERS[bits + 32 * chain.keeps]


def chain_of_letter(name, letter):
    """The chain of a sample that ``letter_of`` made a letter of."""
    number = LETTERS.index(letter)
    stages = tuple(
        stage for bit, stage in enumerate(CHAIN_OUTPUTS) if number >> bit & 1
    )
    own = tuple(record_line(name, stage) for stage in stages)
    keeps = number >= 32
    record = (keeps and recorded_lines(name)) or own
    return Chain(stages, record, keeps) if stages else None


def chains_of_study():
    """The chains of all samples.

    A job elsewhere, which a separate Snakemake runs, finds other files than were there when the main
    process decided; so that tells it by the environment, in a letter a sample.
    """
    told = json.loads(os.environ.get("NGSGPU_CHAINS", "{}"))
    key = str(placed("results"))
    if workflow.is_main_process:
        chains = {name: present_chain(name) for name in STUDY}
        told[key] = "".join(map(letter_of, chains.values()))
        os.environ["NGSGPU_CHAINS"] = json.dumps(told)
    elif len(letters := told.get(key, "")) == len(STUDY):
        chains = {name: chain_of_letter(name, own) for name, own in zip(STUDY, letters)}
    else:
        chains = {name: whole_chain(name) for name in STUDY}
    return {name: chain for name, chain in chains.items() if chain}


CHAINS = chains_of_study()


envvars:
    "NGSGPU_CHAINS",


def chained(name, stage):
    """Whether a stage of a sample is part of a chain."""
    return name in CHAINS and stage in CHAINS[name].stages


def apart(stage, samples):
    """Regular expression of the samples, out of the given one, of which a stage is a separate job."""
    names = one_of(name for name in STUDY if chained(name, stage))
    return samples if names == one_of([]) else f"(?!(?:{names})/)(?:{samples})"
