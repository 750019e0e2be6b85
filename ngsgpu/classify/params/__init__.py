"""Parameters of databases and of classification.

The method is MetaCache's (Kobus 2022, section 6.4). Windows and limits have the values of its
version 2.6; features are chosen by their content, and calls are decided by estimated identity.
``METACACHE_SKETCH`` and ``METACACHE_CALLS`` are its own. What kernels need is imported when it is
used, since the command line imports the parameters.
"""

from ngsgpu.classify.params.calls import (
    CALLS_BY_EVIDENCE,
    METACACHE_CALLS,
    METACACHE_SKETCH,
    PER_MILLION,
    QueryParameters,
    QueryRules,
)
from ngsgpu.classify.params.database import KEEP_ALL, DatabaseParameters, PartitionRequest
from ngsgpu.classify.params.outputs import MOST_ERRORS, NO_EVIDENCE, EvidenceParameters, OutputRules
from ngsgpu.classify.params.sketch import (
    ALL_KEYS,
    LEAST_KEPT,
    HitScale,
    SketchParameters,
    SketchRules,
)

__all__ = [
    "ALL_KEYS",
    "CALLS_BY_EVIDENCE",
    "KEEP_ALL",
    "LEAST_KEPT",
    "METACACHE_CALLS",
    "METACACHE_SKETCH",
    "MOST_ERRORS",
    "NO_EVIDENCE",
    "PER_MILLION",
    "DatabaseParameters",
    "EvidenceParameters",
    "HitScale",
    "OutputRules",
    "PartitionRequest",
    "QueryParameters",
    "QueryRules",
    "SketchParameters",
    "SketchRules",
]
