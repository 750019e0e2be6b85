"""How the outputs of a run get their names: all of them, or none.

They are renamed in the order in which they were opened, statistics last. A signal waits until all
have their names; a failure brings back what was replaced; a process that is killed leaves a
journal by which the next run finishes (``journal``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ngsgpu.ending import defer_signals
from ngsgpu.errors import output_error
from ngsgpu.io.mapped import check_mapped
from ngsgpu.io.output.journal import Journal, Renaming


class Output(Protocol):
    """A file or folder that is complete but for its name."""

    @property
    def replaces_at_once(self) -> bool:
        """Whether ``rename`` is a single step."""

    def close(self) -> None:
        """Have everything written."""

    def renaming(self) -> Renaming | None:
        """The rename that is to come; None for a stream."""

    def pledge(self) -> None:
        """Leave it where it is if the process ends: a journal has it."""

    def keep_old(self) -> None:
        """Prepare for ``restore``."""

    def rename(self) -> None:
        """Give it its name."""

    def restore(self) -> None:
        """Undo ``rename``, if it happened. Does not fail."""

    def discard(self) -> None:
        """Remove what lies under a temporary name. Does not fail."""


def commit_all(outputs: Sequence[Output]) -> None:
    """Give all outputs their names, or none.

    Args:
        outputs: in the order in which they are renamed.

    Raises:
        InputError: a file that is mapped, and was read for them, was cut or changed meanwhile.
        OutputError: one cannot be closed or renamed; then all targets are unchanged, except on
            file systems without hard links, where those already replaced stay replaced.
    """
    check_mapped()
    for output in outputs:
        output.close()
    renamings = [own for output in outputs if (own := output.renaming()) is not None]
    if len(renamings) < 2 and all(output.replaces_at_once for output in outputs):
        for output in outputs:  # one alone is renamed, or is not
            output.rename()
    else:
        with defer_signals():
            _rename_all(outputs, renamings)
    for output in outputs:
        output.discard()


def _rename_all(outputs: Sequence[Output], renamings: Sequence[Renaming]) -> None:
    journal: Journal | None = None
    try:
        for output in outputs:
            output.keep_old()
        try:
            journal = Journal(renamings)
        except OSError as error:
            raise output_error(renamings[0].target, error) from error
        for output in outputs:
            output.pledge()
        for output in outputs:
            output.rename()
    except BaseException:
        if journal is not None:
            journal.remove()  # what it has decided is withdrawn first
        for output in outputs:
            output.restore()
        raise
    journal.remove()
