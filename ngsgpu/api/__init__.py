"""The interface for programs: stages as functions, files as iterables of records.

``ngsgpu`` itself offers all of it (``ngsgpu.correct(...)``). Read ``record`` (a read), ``files``
(reading and writing), ``runs`` (what functions take, and how they run), ``results``, then
``stages``, ``classification``, ``counts`` and ``names``. Nothing is computed here: every
function calls that of a package on files, and what it returns is in temporary files that hold the
command's bytes. Nothing else imports this package. Recipes are in ``docs/recipes.md``.
"""

from ngsgpu.api.classification import Call, Calls, Classifier, classify
from ngsgpu.api.counts import KmerCounts, count
from ngsgpu.api.files import Pair, Reads, Writer, open
from ngsgpu.api.names import NamedSequences
from ngsgpu.api.record import Record
from ngsgpu.api.results import Merged, Result
from ngsgpu.api.stages import assemble, chain, correct, deplete, merge, trim

__all__ = [
    "Call",
    "Calls",
    "Classifier",
    "KmerCounts",
    "Merged",
    "NamedSequences",
    "Pair",
    "Reads",
    "Record",
    "Result",
    "Writer",
    "assemble",
    "chain",
    "classify",
    "correct",
    "count",
    "deplete",
    "merge",
    "open",
    "trim",
]
