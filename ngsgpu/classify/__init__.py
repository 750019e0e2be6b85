"""Classify reads of metagenomes by the minhash sketches they share with reference sequences.

The method is MetaCache's. Rooms, each built on those before it:

- ``formats``: the formats of outputs, with their options; others' register there.
- ``params``: parameters of databases and of classification.
- ``sketch``: reading reference sequences; windows and their sketches.
- ``index``: which windows hold a feature: the format, look-up, checksums, building.
- ``database``: planning, building, storing, opening and extending databases.
- ``query``: queries, and their best candidates.
- ``call``: from candidates to calls; species evidence, coverage filter, abundances.
- ``outputs``: lines of reads, and a sample's reports.
- ``run``: from files to files.

In a room, ``cpu`` holds the reference kernels and ``gpu`` their counterparts.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.classify.database.build import build_database
    from ngsgpu.classify.params import EvidenceParameters, QueryParameters

__all__ = ["EvidenceParameters", "QueryParameters", "build_database"]
__getattr__, __dir__ = on_first_use(__name__, __file__)
