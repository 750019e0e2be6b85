"""The stages of a study, in the order of the page: one file or folder each.

A new stage is a subclass of ``stage.Stage`` in a module here, and a line in ``STAGES``. It names
its files, reads them, and presents its findings as sentences, tables and plots.
"""

from __future__ import annotations

from typing import Final

from ngsgpu.report.sections.assembly import AssemblyStage
from ngsgpu.report.sections.classification.section import ClassificationStage
from ngsgpu.report.sections.correction.section import CorrectionStage
from ngsgpu.report.sections.depletion import DepletionStage
from ngsgpu.report.sections.engines import EnginesStage
from ngsgpu.report.sections.extension import ExtensionStage
from ngsgpu.report.sections.mapped import MappedStage
from ngsgpu.report.sections.merging import MergingStage
from ngsgpu.report.sections.quality import QualityStage
from ngsgpu.report.sections.trimming import TrimmingStage
from ngsgpu.report.sections.unitigs import UnitigsStage
from ngsgpu.report.stage import Stage

STAGES: Final[tuple[Stage, ...]] = (
    TrimmingStage(),
    DepletionStage(),
    QualityStage(),
    CorrectionStage(),
    MergingStage(),
    MappedStage(),
    ExtensionStage(),
    UnitigsStage(),
    AssemblyStage(),
    EnginesStage(),
    ClassificationStage(),
)
