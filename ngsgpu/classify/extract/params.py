"""Which reads are extracted."""

from __future__ import annotations

from ngsgpu.declared.limits import MAX_TAXID
from ngsgpu.declared.options import flag, option
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError


@parameters
class ExtractionParameters:
    """Which calls a read must have."""

    taxa: tuple[int, ...] = option(
        ...,
        "TAXID,...",
        "Taxids; 0 is what was not classified.",
        "--taxon",
        least=0,
        most=MAX_TAXID,
    )
    exclude: tuple[int, ...] | None = option(
        None,
        "TAXID,...",
        "Taxids below those of --taxon that are left out.",
        least=1,
        most=MAX_TAXID,
    )
    with_children: bool = flag(
        "Also the taxa below, of --taxon and of --exclude; needs -d or --taxonomy."
    )
    invert: bool = flag("Write all other reads.")

    def __post_init__(self) -> None:
        from ngsgpu.taxonomy.tree import stated_taxid  # NumPy is too slow for --help

        if not self.taxa:
            raise UsageError("no taxon given; name one, such as `taxa=562`")
        for taxid in (*self.taxa, *(self.exclude or ())):
            try:
                stated_taxid(taxid)
            except ValueError as error:
                raise UsageError(str(error)) from None
