"""The profiles: what a cluster's jobs ask for, and which jobs are not worth submitting."""

from __future__ import annotations

import re

import yaml

from tests.support.workflow import ROOT

# Named in a loop (workflow/rules/chain.smk).
CHAINS = {"chain_pairs", "chain_single", "chain_simulated"}
RULES = "\n".join(path.read_text() for path in sorted((ROOT / "workflow/rules").rglob("*.smk")))
SLURM = yaml.safe_load((ROOT / "workflow/profiles/slurm/profile.yaml").read_text())


def rules_with(pattern: str) -> set[str]:
    """Names of the rules whose text has the pattern, and of those that are made from them."""
    parts = re.split(r"^rule (\w+):$", RULES, flags=re.MULTILINE)
    own = {
        name
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
        if pattern_in(pattern, text)
    }
    made = re.findall(r"^use rule (\w+) as (\w+) with:", RULES, flags=re.MULTILINE)
    return own | {name for source, name in made if source in own}


def pattern_in(pattern: str, text: str) -> bool:
    """Whether a rule's text, without what follows the rule, has the pattern."""
    return bool(re.search(pattern, re.split(r"^\S", text, flags=re.MULTILINE)[0]))


def test_slurm_profile_sends_all_jobs_with_gpus_where_gpus_are() -> None:
    assert set(SLURM["set-resources"]) == rules_with(r"gpu=(unless_served\()?gpus\(") | CHAINS
    assert {own["slurm_partition"] for own in SLURM["set-resources"].values()} == {"GPU_PARTITION"}


def test_slurm_profile_neither_caps_at_one_gpu_nor_retries() -> None:
    assert SLURM["resources"]["gpu"] > 1
    assert not {"retries", "restart-times", "cores", "set-threads"} & set(SLURM)


def test_jobs_of_seconds_are_not_submitted() -> None:
    local = {
        name
        for block in re.findall(r"^localrules:\n((?:    \w+,\n)+)", RULES, flags=re.MULTILINE)
        for name in re.findall(r"\w+", block)
    }
    short = rules_with(r"runtime=(grown\()?5\b")
    assert short and short <= local
