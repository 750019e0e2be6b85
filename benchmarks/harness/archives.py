"""Archives, unpacked by every Python that ngsgpu runs on."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack an archive that is trusted.

    Python before 3.11.4, such as Debian 12's, has no filters, and from 3.12 on it warns without.
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)
