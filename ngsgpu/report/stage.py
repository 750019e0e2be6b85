"""The interface of a stage to the report; ``sections`` has a file for each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from ngsgpu.report import words
from ngsgpu.report.absent import is_present
from ngsgpu.report.drawing import VARIANT_LABELS
from ngsgpu.report.files import Json
from ngsgpu.report.model import VARIANTS, FileSpec, Sample, SampleFiles, SampleResults, Study
from ngsgpu.report.page import Column, Finding, Plot, SampleSection, Table
from ngsgpu.report.spread import MANY_SAMPLES


class Stage(ABC):
    """A stage: its files, their findings on a sample, and its section of the page.

    Attributes:
        name: of the section in links.
        title: its heading.
        files: its files in the manifest of each sample.
        intro: text of the section before its figures and tables, HTML.
        is_expected: whether the report lists missing files of samples that do not name them.
        is_conclusion: whether its findings come last among a sample's main results.
    """

    name: str
    title: str
    files: tuple[FileSpec, ...] = ()
    intro = ""
    is_expected = False
    is_conclusion = False

    def find(self, sample: str, folder: Path) -> dict[tuple[str, ...], Path]:
        """The existing files in the workflow's layout."""
        found: dict[tuple[str, ...], Path] = {}
        for spec in self.files:
            for key in spec.keys or ("",):
                paths = (folder / place.format(key) for place in spec.layout)
                path = next((path for path in paths if path.is_file()), None)
                if path is not None:
                    found[(spec.name, key) if key else (spec.name,)] = path
        return found

    @abstractmethod
    def read(self, sample: Sample, missing: list[str]) -> object:
        """Read a sample's files; descriptions of missing ones are added to ``missing``.

        Raises:
            InputError: a file exists, but is damaged.
        """

    def fill(  # noqa: B027
        self, section: SampleSection, results: SampleResults, *, is_brief: bool
    ) -> None:
        """Add tables and figures of one sample to its section, where there are any.

        Args:
            section: of the sample, and empty.
            results: results of the sample.
            is_brief: whether to leave out what ``overlays`` has for all samples.
        """

    def sections(self, samples: Sequence[SampleResults]) -> list[SampleSection]:
        """The sections of samples that have results, and of others from which they are expected.

        They are not expected of samples that were only classified, or failed.
        """
        brief = len(samples) > MANY_SAMPLES
        made = []
        for number, results in enumerate(samples):
            own = results.sample
            section = SampleSection(own.name, own.label, own.kind, number=number)
            self.fill(section, results, is_brief=brief)
            is_expected = self.is_expected and not own.is_classified and not results.notes
            if is_expected or not section.is_empty:
                made.append(section)
        return made

    def figure(self, samples: Sequence[SampleResults]) -> Plot | None:
        """A figure of all samples, before their sections."""
        return None

    def overlays(self, samples: Sequence[SampleResults]) -> list[Plot]:
        """Figures of many samples, in place of one for each."""
        return []

    def table(self, study: Study) -> Table | None:
        """A table of the whole study, before the samples' sections."""
        return None

    def intro_for(self, samples: Sequence[SampleResults]) -> str:
        """The text before figures and tables."""
        return self.intro

    def say(self, results: SampleResults, finding: Finding) -> None:  # noqa: B027
        """Add a sample's main results."""

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """Columns of the table of main results."""
        return []


def shares(heading: str, stats: Sequence[Json | None], part: str, whole: str) -> Column:
    """A column of shares.

    Args:
        heading: of the column.
        stats: statistics of each sample; None: there are none.
        part: entry of what is a part.
        whole: entry of what it is a part of.
    """
    cells = [
        words.share(own.number(part), own.number(whole)) if own else words.NOTHING for own in stats
    ]
    return Column(heading, cells)


def variants(
    files: SampleFiles, name: str, what: str, missing: list[str]
) -> Iterator[tuple[str, Path]]:
    """The existing files of the uncorrected and the corrected reads.

    Args:
        files: of the sample.
        name: of the files.
        what: their description, with ``{}`` for the reads, added to ``missing`` if they do not
            exist.
        missing: descriptions of missing files.
    """
    paths = files.group(name)
    for variant in VARIANTS:
        path = paths.get(variant)
        if is_present(path, what.format(VARIANT_LABELS[variant]), missing):
            assert path is not None
            yield variant, path
