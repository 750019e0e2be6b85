"""The report's section on devices: which GPU did which job, and when; from the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.report import words
from ngsgpu.report.absent import read_note
from ngsgpu.report.drawing import drawn
from ngsgpu.report.files import Json, load_json
from ngsgpu.report.model import Study
from ngsgpu.report.page import Plot, Table
from ngsgpu.report.palette import CYCLE, GRID, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAGES: Final = {
    "ngsgpu.correct": "correction",
    "ngsgpu.spectrum": "correction",
    "ngsgpu.merge": "merging",
    "ngsgpu.extend": "extension",
    "ngsgpu.classify": "classification",
    "ngsgpu.db_build": "database",
    "ngsgpu.gpu_run": "other programs",
}
"""Names of the stages by the schema of their statistics."""

_NAMES: Final = tuple(dict.fromkeys(STAGES.values()))

_LONGEST_PAUSE: Final = 600.0
"""Seconds without any job beyond which the timeline leaves a pause out."""

_HELD, _WAITED = 0.62, 0.12
"""Heights of bars, in lanes."""


@dataclass(frozen=True)
class Span:
    """A job on a device, or on the CPUs of a host; times in seconds since the epoch.

    Attributes:
        stage: its name.
        lane: the GPU's UUID, or the host.
        asked: when the GPU was asked for; the beginning on CPUs.
        begin: when it was leased.
        end: when it was given back.
        gpu: what the statistics say of the GPU; None on CPUs.
        planned: bytes of GPU memory; None if not planned.
    """

    stage: str
    lane: str
    host: str
    asked: float
    begin: float
    end: float
    gpu: Json | None = None
    planned: float | None = None


def day(moment: float) -> str:
    """The date of a time, in UTC."""
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def read_spans(study: Study) -> list[Span]:
    """All jobs of a study whose statistics say where they ran, one for each GPU, by time.

    Raises:
        InputError: a file of statistics is damaged.
    """
    found: dict[tuple[str, str], Span] = {}
    for path in _statistics(study):
        for span, lease in _spans(path):
            key = (lease or str(path), span.lane)
            # A command that takes several samples writes statistics for each of them.
            if key not in found or found[key].end < span.end:
                found[key] = span
    return sorted(found.values(), key=lambda span: (span.begin, span.end, span.lane))


def _statistics(study: Study) -> Iterator[Path]:
    paths = [path for jobs in study.jobs.values() for path in jobs.values()]
    for sample in study.samples:
        paths += [
            p for n in ("deplete", "correct", "merge", "extend") if (p := sample.files.one(n))
        ]
        databases = sample.files.by_database("classification")
        paths += [files["stats"] for files in databases.values() if "stats" in files]
    return (path for path in paths if path.is_file() and read_note(path) is None)


def _spans(path: Path) -> Iterator[tuple[Span, str | None]]:
    document = load_json(path, "make the file again")
    statistics = Json(path, document if isinstance(document, dict) else {})
    job = statistics.get("job")
    if not isinstance(job, dict):
        return  # of an earlier version
    entry = Json(path, job)
    stage = STAGES.get(str(statistics.get("schema")), "other programs")
    host = str(entry.get("host"))
    gpus = [Json(path, gpu if isinstance(gpu, dict) else {}) for gpu in entry.entries("gpus")]
    planned = statistics.number("gpu_memory.planned_bytes")
    for gpu in gpus:
        begin, end = entry.moment("asked"), gpu.moment("until")
        lane = str(gpu.get("uuid"))
        yield (
            Span(stage, lane, host, begin, gpu.moment("leased"), end, gpu, planned),
            str(entry.get("lease")),
        )
    if not gpus or statistics.get("backend") == "cpu":
        begin = entry.moment("started")
        yield Span(stage, host, host, begin, begin, entry.moment("ended")), None


def devices_tables(spans: Sequence[Span]) -> list[Table]:
    """What the GPUs are, and how they were used: a line for each; nothing without any."""
    devices, use = [], []
    for lane in _lanes(spans):
        own = [(span, span.gpu) for span in spans if span.lane == lane and span.gpu is not None]
        if not own:
            continue
        (first, gpu), jobs = own[0], [gpu for _, gpu in own]
        known = [str(gpu.get(key) or words.NOTHING) for key in ("name", "pci", "driver")]
        devices.append((lane, *known, first.host))
        use.append(
            (
                _lane_name(first),
                words.count(len(own)),
                words.duration(sum(span.end - span.begin for span, _ in own)),
                words.duration(_sum(gpu.number("busy_s") for gpu in jobs)),
                words.duration(sum(span.begin - span.asked for span, _ in own)),
                words.bytes_as_mebibytes(_most(gpu.number("peak_bytes") for gpu in jobs)),
                words.bytes_as_mebibytes(_most(span.planned for span, _ in own)),
            )
        )
    if not devices:
        return []
    headings = ("", "jobs", "held", "busy", "waited for", "peak memory", "planned memory")
    return [
        Table(headings, use).without_empty_columns(),
        Table(
            ("UUID", "GPU", "PCI address", "driver", "host"),
            devices,
            text_columns=frozenset(range(1, 5)),
        ),
    ]


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _lanes(spans: Sequence[Span]) -> list[str]:
    """GPUs by host, then the CPUs of hosts."""
    order = {span.lane: (span.gpu is None, span.host, span.lane) for span in spans}
    return sorted(order, key=order.__getitem__)


def devices_figure(spans: Sequence[Span]) -> Plot | None:
    """The timeline; None without jobs."""
    if not spans:
        return None
    first = datetime.fromtimestamp(min(span.asked for span in spans), UTC)
    on_gpus = any(span.gpu for span in spans)
    lanes = " on the CPUs of each host"
    if on_gpus:
        lanes = (
            ": one lane per GPU, and the CPUs of each host below; thin grey lines are jobs waiting "
            "for the GPU that they then get"
        )
    caption = f"Jobs over time, from {first:%Y-%m-%d %H:%M:%S} UTC{lanes}."
    return Plot(_timeline("devices", spans), caption, is_wide=True)


@drawn()
def _timeline(figure: Figure, spans: Sequence[Span]) -> None:
    """Bars of jobs in the lanes of their devices."""
    from matplotlib.patches import Patch

    at, pauses = _without_pauses(spans)
    rows = _rows(spans)
    names: dict[str, list[float]] = {}
    axes = figure.subplots()
    unit, divisor = ("s", 1.0) if max(map(at, (s.end for s in spans))) < 300 else ("min", 60.0)
    for number, stage in enumerate(_NAMES):
        for span in (span for span in spans if span.stage == stage):
            y = rows[span]
            names.setdefault(_lane_name(span), []).append(y)
            begin, end = at(span.begin) / divisor, at(span.end) / divisor
            axes.barh(y, end - begin, left=begin, height=_HELD, color=CYCLE[number],
                      edgecolor="white", linewidth=0.5)  # fmt: skip
            if span.begin > span.asked:
                asked = at(span.asked) / divisor
                axes.barh(y + 0.44, begin - asked, left=asked, height=_WAITED, color=MUTED)
    for pause in pauses:
        axes.axvline(pause / divisor, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set_yticks([sum(set(own)) / len(set(own)) for own in names.values()], list(names))
    axes.set_ylim(max(rows.values()) + 0.7, -0.7)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"time ({unit}{', pauses over 10 min left out' if pauses else ''})")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    for y in range(round(max(rows.values()))):
        axes.axhline(y + 0.55, color=GRID, linewidth=0.7, zorder=0)
    used = {span.stage for span in spans}
    legend = [Patch(color=colour, label=stage)
              for stage, colour in zip(_NAMES, CYCLE, strict=True)
              if stage in used]  # fmt: skip
    figure.legend(handles=legend, loc="outside upper left", ncols=len(legend))
    figure.set_size_inches(8.6, 1.1 + 0.3 * (max(rows.values()) + 1))


def _lane_name(span: Span) -> str:
    return f"CPUs of {span.host}" if span.gpu is None else f"{span.lane[:12]} ({span.host})"


def _rows(spans: Sequence[Span]) -> Mapping[Span, int]:
    """Rows from the top: one for a GPU, as many for a host's CPUs as jobs ran at the same time."""
    rows: dict[Span, int] = {}
    first = 0
    for lane in _lanes(spans):
        ends: list[float] = []
        for span in (span for span in spans if span.lane == lane):
            free = next((row for row, end in enumerate(ends) if end <= span.begin), len(ends))
            ends[free : free + 1] = [span.end]
            rows[span] = first + free
        first += len(ends)
    return rows


def _without_pauses(spans: Sequence[Span]) -> tuple[Any, list[float]]:
    """A function from times to seconds on the axis, and where on it pauses were left out."""
    shifts: list[tuple[float, float]] = []
    begin = end = min(span.asked for span in spans)
    left_out = begin
    pauses = []
    for span in sorted(spans, key=lambda span: span.asked):
        if span.asked - end > _LONGEST_PAUSE:
            left_out += span.asked - end
            shifts.append((span.asked, left_out))
            pauses.append(span.asked - left_out)
        end = max(end, span.end)

    def at(time: float) -> float:
        return time - next((shift for first, shift in reversed(shifts) if time >= first), begin)

    return at, pauses
