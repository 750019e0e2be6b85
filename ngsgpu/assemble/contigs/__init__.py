"""Contigs: the assembly of reads.

Read in this order: ``params``, ``reads`` (in memory), ``pieces`` (the assembly graph),
``cleaning``, ``walks`` (reads through the graph), ``raising`` (to a larger k), ``growth`` (k by k),
``places``, ``votes`` (of reads on bases), the room ``joins`` (over repeats, by pairs), ``files``,
``scaffolds``, ``coverage``, ``run``. See ``docs/assemble.md``.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.assemble.contigs.params import AssemblyParameters
    from ngsgpu.assemble.contigs.run import AssemblyStatistics, assemble_files

__all__ = ["AssemblyParameters", "AssemblyStatistics", "assemble_files"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
