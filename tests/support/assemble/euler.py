"""Euler tours in plain Python, slowly, on strings, written from docs/euler.md."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.support.minhash.oracle import reverse_complement


def edges_of(sequences: Iterable[str], length: int) -> list[str]:
    """All l-mers of both strands, each once, in order."""
    found = {own[i : i + length] for own in sequences for i in range(len(own) - length + 1)}
    return sorted(found | {reverse_complement(own) for own in found})


def groups_of(pairs: Iterable[tuple[str, str]], edges: Sequence[str]) -> dict[str, str]:
    """The smallest edge that each is connected with."""
    near = defaultdict(list)
    for first, second in pairs:
        near[first].append(second)
        near[second].append(first)
    label: dict[str, str] = {}
    for edge in edges:
        waiting = [] if edge in label else [edge]
        while waiting:
            own = waiting.pop()
            if own not in label:
                label[own] = edge
                waiting += near[own]
    return label


def entering_together(edges: Sequence[str]) -> list[tuple[str, str]]:
    """Edges that enter the same vertex, next to each other in alphabetical order."""
    by_sink = defaultdict(list)
    for edge in sorted(edges):
        by_sink[edge[1:]].append(edge)
    return [pair for own in by_sink.values() for pair in pairwise(own)]


def paired(edges: Sequence[str]) -> dict[str, str]:
    """What follows each edge before the swipe: the first the first, the second the second."""
    leaving = defaultdict(list)
    for edge in sorted(edges):
        leaving[edge[:-1]].append(edge)
    by_sink = defaultdict(list)
    for edge in sorted(edges):
        by_sink[edge[1:]].append(edge)
    return {
        first: second
        for vertex, own in by_sink.items()
        for first, second in zip(own, leaving[vertex], strict=False)
    }


def surplus(edges: Sequence[str]) -> int:
    """Paths that are needed at least: vertices that more edges leave than enter."""
    balance = Counter(edge[:-1] for edge in edges)
    balance.subtract(edge[1:] for edge in edges)
    return sum(max(0, own) for own in balance.values())


def hierholzer(edges: Sequence[str], first: str) -> list[str]:
    """An Euler circuit of a balanced graph's component, from a vertex: its edges in order."""
    leaving = defaultdict(list)
    for edge in edges:
        leaving[edge[:-1]].append(edge)
    stack: list[tuple[str, str | None]] = [(first, None)]
    circuit = []
    while stack:
        vertex, by = stack[-1]
        if leaving[vertex]:
            edge = leaving[vertex].pop()
            stack.append((edge[1:], edge))
        else:
            stack.pop()
            if by is not None:
                circuit.append(by)
    return circuit[::-1]
