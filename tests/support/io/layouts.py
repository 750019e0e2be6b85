"""Where the records of files lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ngsgpu.io.compress.source import Source
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.paths import identify
from ngsgpu.io.reread import FileLayout, ReadFilesLayout, Segment
from ngsgpu.io.text.reader import PhredOffset
from tests.support.io.records import compression


def layouts_of(lanes: list[ReadFiles], phred_offset: PhredOffset = "auto") -> list[ReadFilesLayout]:
    """Places as a first pass on the CPU sees them."""
    found = []
    read = 0
    for lane in lanes:
        first_read = read
        segments: list[list[Segment]] = [[] for _ in lane.inputs]
        starts: list[list[np.ndarray]] = [[] for _ in lane.inputs]
        for mates in lane.batches(threads=1, phred_offset=phred_offset, chunk_bytes=3000):
            for mate, batch in enumerate(mates):
                at = segments[mate][-1].end if segments[mate] else 0
                end = at + len(batch.text)
                # The base is arbitrary, as long as the entries fit.
                segments[mate].append(Segment(at, end, at - 7, batch.first_record, len(batch)))
                starts[mate].append((batch.seq_start - batch.begin + 7).astype(np.uint32))
            read += sum(map(len, mates))
        files = tuple(
            FileLayout(
                path,
                compression(Path(path)),
                identify(path),
                tuple(segments[mate]),
                np.concatenate([np.zeros(0, dtype=np.uint32), *starts[mate]]),
            )
            for mate, path in enumerate(lane.inputs)
        )
        found.append(ReadFilesLayout(files, first_read))
    return found


def kept(lane: ReadFilesLayout) -> ReadFilesLayout:
    """With the inflated data of compressed files in memory."""
    files = []
    for file in lane.files:
        if file.compression != "plain":
            source = Source(file.path, threads=1, chunk_bytes=3000)
            parts = [chunk.data for chunk in source.chunks()]
            source.close()
            file = replace(file, kept=tuple(parts))
        files.append(file)
    return replace(lane, files=tuple(files))
