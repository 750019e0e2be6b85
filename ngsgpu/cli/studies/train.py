"""``ngsgpu train``: the forests of ``ngsgpu correct --model``, from simulated reads."""

from __future__ import annotations

from typing import Annotated, Final

import click

from ngsgpu.cli.options import Threads
from ngsgpu.cli.run import thread_count
from ngsgpu.declared.options import argument, option
from ngsgpu.declared.roles import ReadPath, ReadsPath, Text, WrittenPath
from ngsgpu.train.params import Settings

Samples = Annotated[list[ReadPath], argument(..., "SAMPLES", "Outputs of ngsgpu train extract.")]

Forests = Annotated[ReadPath, argument(..., "FORESTS", "Output of ngsgpu train fit.")]


def extract(
    truth: list[ReadPath] = option(
        ..., "FILE", "SAM, BAM or CRAM of the error-free reads (art_illumina -ef)."
    ),
    in1: list[ReadsPath] = option(..., "FILE", "Reads or first mates.", "-i", "--in1"),
    out: WrittenPath = option(
        ..., "FILE", "Output: positions with features and truth.", "-o", "--out"
    ),
    group: Text = option(
        ..., "NAME", "The organism; forests are tested on organisms they were not trained on."
    ),
    in2: list[ReadsPath] | None = option(None, "FILE", "Second mates.", "-I", "--in2"),
    rows: int = option(
        400_000, "N", "Positions recorded, anchors' and candidates' together.", least=1
    ),
    every: int = option(16, "N", "Record one in N positions of candidates.", least=1),
    threads: Threads = 0,
) -> None:
    """Record the positions that forests decide on, and whether the consensus is right there."""
    from ngsgpu.correct.params import CorrectionParameters
    from ngsgpu.train.extract import extract as record
    from ngsgpu.train.samples import save_samples, select

    found, labels = record(
        truth,
        in1,
        in2 or [],
        parameters=CorrectionParameters(model="none"),
        rows=rows,
        every=every,
        threads=thread_count(threads),
    )
    save_samples(out, group, found, labels)
    for kind in ("anchor", "candidate"):
        right = select(kind, found, labels)[1]
        click.echo(
            f"{kind:9}  {len(right):,} positions, the consensus wrong at {(right == 0).sum():,}",
            err=True,
        )


def fit(
    *,
    samples: Samples,
    out: WrittenPath = option(..., "FILE", "Output: the forests.", "-o", "--out"),
    leave_out: list[Text] | None = option(
        None, "NAME", "Organism that is not trained on but tested on; repeat for more."
    ),
    settings: Settings,
) -> None:
    """Grow the forests, and test them on the organisms left out; needs scikit-learn."""
    from ngsgpu.train.fit import fit_groups
    from ngsgpu.train.samples import save_forests

    forests, document = fit_groups(samples, leave_out or [], settings)
    save_forests(out, forests, document)
    for kind, table in document["tests"].items():
        if leave_out and not table:
            click.echo(
                f"{kind:9}  not tested: {', '.join(leave_out)} has no position where the "
                "consensus is right"
            )
        for row in table:
            click.echo(
                f"{kind:9}  P {row['threshold']:.2f}  sensitivity {row['sensitivity']:.5f}  "
                f"wrong {row['wrong']:,} of {row['wrong_positions']:,}"
            )


def export(
    forests: Forests,
    out: WrittenPath = option(..., "FILE", "Output: the model.", "-o", "--out"),
) -> None:
    """Write fitted forests as a model file for ngsgpu correct --model."""
    from ngsgpu.correct.forests.forest import Model
    from ngsgpu.train.samples import load_forests

    grown, document = load_forests(forests)
    model = Model(grown["anchor"], grown["candidate"], document)
    model.save(out)
    click.echo(
        f"{out}: {model.anchor.trees} and {model.candidate.trees} trees, "
        f"{out.stat().st_size:,} bytes",
        err=True,
    )


COMMANDS: Final = {"extract": extract, "fit": fit, "export": export}
