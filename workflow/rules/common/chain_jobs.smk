# What the jobs of chains take, run and need (rules/chain.smk). Functions only; which stages of a sample
# are a chain is decided in chain.smk.

import math
import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class ChainRule:
    """What is different in the rules of chains.

    Attributes:
        name: of the rule.
        stages: in order.
        is_paired: whether the samples have mates.
        keeps: whether it stands for what an earlier job made.
        samples: regular expression of their names.
    """

    name: str
    stages: tuple[str, ...]
    is_paired: bool
    keeps: bool
    samples: str

    @property
    def outputs(self):
        """Outputs by stage and option, the record last: Snakemake touches them in this order."""
        return {
            f"{stage}_{option}": f"results/{{sample}}/{path}"
            for stage in self.stages
            for option, path in stage_outputs(stage, self.is_paired).items()
        } | {"record": f"results/{{sample}}/{CHAIN_RECORD}"}

    @property
    def threads(self):
        """Threads of the stage that has most."""
        return max(config[stage]["threads"] for stage in self.stages)

    @property
    def gpu(self):
        """GPUs; none for rules that keep stages: they hardly ever run, and no profile knows them."""
        return 0 if self.keeps else gpus(*self.stages)

    @property
    def priority(self):
        """Priority of the stage that comes first."""
        return max(PRIORITY[stage] for stage in self.stages)


def chain_rules():
    """The rules of the study's chains: one for all samples of a kind, and some that keep stages."""
    samples = {}
    for name, chain in CHAINS.items():
        kind = "pairs" if STUDY[name].second else "single"
        kind = "simulated" if name in DATASETS else kind
        called = "_".join(["chain", kind, *(chain.stages if chain.keeps else ())])
        key = called, chain.stages, kind != "single", chain.keeps
        samples.setdefault(key, []).append(name)
    return [ChainRule(*key, one_of(names)) for key, names in samples.items()]


def reads_of_chain(mate):
    """Input function: files of first mates, or of single-end reads (0), or of second mates (1)."""
    functions = {
        "trim": (sequenced_first, sequenced_second),
        "deplete": (trimmed_first, trimmed_second),
    }

    def reads(wildcards):
        stage = CHAINS[wildcards.sample].stages[0]
        return functions.get(stage, (raw_first, raw_second))[mate](wildcards)

    return reads


def input_of_stage(stage, path):
    """Input function: a file that a stage takes besides the reads, in chains with this stage."""

    def file(wildcards):
        if stage not in CHAINS[wildcards.sample].recorded or not is_on(stage):
            return []
        return (
            path(wildcards) if callable(path) else path.format(sample=wildcards.sample)
        )

    return file


def guard_chain(wildcards, input, output):
    """Guard of a sample's chain: outputs of stages before one that fails stay."""
    return guarded(input, [], output)


def chain_settings(wildcards, input):
    """Commands that put options for the steps and the adapters that were found into an array."""
    stages = CHAINS[wildcards.sample].stages
    steps = f"settings=(--steps {','.join(stages)})"
    if "trim" not in stages:
        return steps
    each = 'settings+=(--set "trim.arguments=$(printf %q "$word")")'
    adapters = adapter_options(wildcards, input)
    return f'{steps}; {adapters}; for word in "${{options[@]}}"; do {each}; done'


def chain_arguments(wildcards, input, output, resources):
    """Options of ``ngsgpu run`` for the outputs and the options of each step."""
    for stage in CHAINS[wildcards.sample].stages:
        words = [
            f"--{key.removeprefix(f'{stage}_')} {shlex.quote(str(path))}"
            for key, path in output.items()
            if key.startswith(f"{stage}_")
        ]
        if stage == "deplete":
            words.append(f"--index {shlex.quote(str(input.host))}")
        if not isinstance(resources.gpu, str) and resources.gpu > 1:
            words.append(f"--gpus {max(1, min(wanted_gpus(stage), resources.gpu))}")
        words.append(stage_options(wildcards.sample, stage))
        setting = f"{stage}.arguments={' '.join(words)}"
        yield f"--set {shlex.quote(setting)}"


def chain_record(wildcards):
    """What is written down of a sample's chain, a line a stage."""
    return list(CHAINS[wildcards.sample].record)


def chain_memory(wildcards, input, attempt):
    """Memory of the stage that takes most, and for the reads between two stages."""
    reads_mb = unpacked_mb([*listed(input.first), *listed(input.second)])
    needed = [2000]
    for stage in CHAINS[wildcards.sample].stages:
        needed += [config[stage]["mem_mb"], PER_MB[stage][0] * reads_mb]
        if stage == "deplete":
            needed.append(unpacked_mb([input.host]) + 1000)
    # What a stage reads and what it writes, with the margin of `ngsgpu run`.
    return math.ceil(max(needed) + 2.5 * reads_mb) * 2 ** (attempt - 1)


def chain_minutes(wildcards, input, attempt):
    """Minutes of all stages."""
    reads = [*listed(input.first), *listed(input.second)]
    minutes = (
        max(config[stage]["runtime"], needed_minutes(stage, reads))
        for stage in CHAINS[wildcards.sample].stages
    )
    return sum(minutes) * 2 ** (attempt - 1)
