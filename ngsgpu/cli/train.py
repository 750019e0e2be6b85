"""``ngsgpu train``: the forests of ``ngsgpu correct --model``, from simulated reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ngsgpu.cli.options import Threads, add_commands, option
from ngsgpu.cli.run import thread_count

Samples = Annotated[
    list[Path], typer.Argument(metavar="SAMPLES", help="Outputs of ngsgpu train extract.")
]

Forests = Annotated[Path, typer.Argument(metavar="FORESTS", help="Output of ngsgpu train fit.")]


def extract(
    truth: list[Path] = option(
        ..., "FILE", "SAM, BAM or CRAM of the error-free reads (art_illumina -ef)."
    ),
    in1: list[Path] = option(..., "FILE", "Reads or first mates.", "-i", "--in1"),
    out: Path = option(..., "FILE", "Output: positions with features and truth.", "-o", "--out"),
    group: str = option(
        ..., "NAME", "The organism; forests are tested on organisms they were not trained on."
    ),
    in2: list[Path] | None = option(None, "FILE", "Second mates.", "-I", "--in2"),
    rows: int = option(
        400_000, "N", "Positions recorded, anchors' and candidates' together.", min=1
    ),
    every: int = option(16, "N", "Record one in N positions of candidates.", min=1),
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
        typer.echo(
            f"{kind:9}  {len(right):,} positions, the consensus wrong at {(right == 0).sum():,}",
            err=True,
        )


def fit(
    samples: Samples,
    out: Path = option(..., "FILE", "Output: the forests.", "-o", "--out"),
    leave_out: list[str] | None = option(
        None, "NAME", "Organism that is not trained on but tested on; repeat for more."
    ),
    method: str = option(
        "boosting", "boosting|forest", "Gradient boosting, or a random forest as CARE's."
    ),
    trees: int = option(60, "N", "Trees of each forest.", min=1),
    leaves: int = option(31, "N", "Leaves of a tree at most.", min=2, max=30_000),
    threshold: float = option(0.9, "P", "Probability from which a base is changed."),
    sure: float = option(
        0.998, "P", "The same where the corrections of other reads do not confirm it."
    ),
    seed: int = option(1, "N", "Seed of what is random."),
) -> None:
    """Grow the forests, and test them on the organisms left out; needs scikit-learn."""
    from ngsgpu.train.fit import Settings, fit_groups
    from ngsgpu.train.samples import save_forests

    settings = Settings(
        method=method,  # type: ignore[arg-type]  # checked there
        trees=trees,
        leaves=leaves,
        threshold=threshold,
        sure=sure,
        seed=seed,
    )
    forests, document = fit_groups(samples, leave_out or [], settings)
    save_forests(out, forests, document)
    for kind, table in document["tests"].items():
        if leave_out and not table:
            typer.echo(
                f"{kind:9}  not tested: {', '.join(leave_out)} has no position where the "
                "consensus is right"
            )
        for row in table:
            typer.echo(
                f"{kind:9}  P {row['threshold']:.2f}  sensitivity {row['sensitivity']:.5f}  "
                f"wrong {row['wrong']:,} of {row['wrong_positions']:,}"
            )


def export(
    forests: Forests,
    out: Path = option(..., "FILE", "Output: the model.", "-o", "--out"),
) -> None:
    """Write fitted forests as a model file for ngsgpu correct --model."""
    from ngsgpu.correct.forests.forest import Model
    from ngsgpu.train.samples import load_forests

    grown, document = load_forests(forests)
    model = Model(grown["anchor"], grown["candidate"], document)
    model.save(out)
    typer.echo(
        f"{out}: {model.anchor.trees} and {model.candidate.trees} trees, "
        f"{out.stat().st_size:,} bytes",
        err=True,
    )


app = typer.Typer(
    no_args_is_help=True, help="Train the forests of ngsgpu correct --model on simulated reads."
)
add_commands(app, extract, fit, export)
