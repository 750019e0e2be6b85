"""How sequences are sketched, and how many hits of sketches are expected."""

from __future__ import annotations

from typing import Final, NamedTuple

from ngsgpu.declared.options import option
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError

MAX_KMER: Final = 16
MAX_SKETCH: Final = 32
MAX_WINDOW: Final = 1 << 16

ALL_KEYS: Final = 1 << 16
"""Values of the half of a key that decides whether its feature is kept: one bit more than it."""
LEAST_KEPT: Final = ALL_KEYS >> 10
"""Of the smallest fraction, a 1024th."""
_THIN_SCALE: Final = 256
_SLACK: Final = 16


class SketchRules(NamedTuple):
    """``SketchParameters`` in the kernels' form.

    Features are kept if the lower half of their key is below ``kept``. Either ``sketch`` or
    ``smer`` is 0.
    """

    kmer: int
    sketch: int
    window: int
    stride: int
    kept: int = ALL_KEYS
    smer: int = 0


class HitScale(NamedTuple):
    """How hits are counted where they are compared with those that are expected.

    Any stretch of a reference sequence has ``per_kmer / unit`` features per k-mer, or ``fraction``
    of that; a query looks up (nearly) all of them. One hit is chance: of the features of a read,
    one is often somewhere in a large database; of a fraction of them, that fraction. A hit counts
    ``unit``; those of chance count ``chance``, and a k-mer of a query adds ``per_kmer`` to what is
    expected.
    """

    unit: int
    chance: int
    per_kmer: int


@parameters
class SketchParameters:
    """Which k-mers of sequences are features, and how their places are stored.

    By default a k-mer is a feature by its content alone, so that equal sequence has equal features:
    if it is a closed syncmer, whose smallest s-mer by hash is its first or its last one. A window
    then holds the k-mers that begin in its first ``stride`` bases. With ``sketch``, the features of
    a window are those with the smallest hashes, as in MetaCache (``features`` names the kind).
    """

    kmer: int = option(16, "K", "k-mer length, 4 to 16.", least=4, most=MAX_KMER)
    sketch: int | None = option(
        None,
        "N",
        "MetaCache's features: the N k-mers of each window with the smallest hashes, 1 to 32.",
        shown_default="closed syncmers",
        least=1,
        most=MAX_SKETCH,
    )
    window: int = option(
        127,
        "N",
        "Window length in bases; without --sketch, stride + kmer - 1 if --stride is given.",
        least=4,
        most=MAX_WINDOW,
    )
    stride: int = option(
        112,
        "N",
        "Distance between window starts.",
        shown_default="window - kmer + 1",
        least=1,
        most=MAX_WINDOW,
    )
    fraction: float = option(
        1.0,
        "F",
        "Keep this fraction of all features, those with the lowest hashes; in steps of 1/65536.",
        least=LEAST_KEPT / ALL_KEYS,
        most=1,
    )
    smer: int = option(
        6,
        "S",
        "s-mer length of closed syncmers: 2 of (kmer - smer + 1) k-mers are features.",
        least=2,
        most=MAX_KMER,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", round(self.fraction * ALL_KEYS) / ALL_KEYS)
        if self.sketch is None:
            object.__setattr__(self, "window", self.stride + self.kmer - 1)
            if self.smer >= self.kmer:
                raise UsageError(f"`smer` must be below `kmer` ({self.kmer}), not {self.smer}")
        if self.window < self.kmer:
            raise UsageError(f"`window` must be at least `kmer` ({self.kmer}), not {self.window}")
        if self.stride > self.window:
            raise UsageError(
                f"`stride` must be from 1 to `window` ({self.window}), not {self.stride}"
            )

    @property
    def features(self) -> str:
        """Kind of the features: ``syncmers`` or ``windows``."""
        return "syncmers" if self.sketch is None else "windows"

    @property
    def rules(self) -> SketchRules:
        """The parameters in the kernels' form."""
        smer = self.smer if self.sketch is None else 0
        return SketchRules(self.kmer, self.sketch or 0, self.window, self.stride, self.kept, smer)

    @property
    def kept(self) -> int:
        """``fraction`` in the kernels' form, 64 to 65,536."""
        return round(self.fraction * ALL_KEYS)

    @property
    def is_thin(self) -> bool:
        """Whether some features are left out."""
        return self.kept < ALL_KEYS

    def windows(self, length: int) -> int:
        """Windows of a sequence, except those too short for a k-mer."""
        if length <= self.window:
            return int(length >= self.kmer)
        full = (length - self.window) // self.stride + 1
        return full + int(length - full * self.stride >= self.kmer)

    @property
    def per_window(self) -> int:
        """Features of a full window without repeated k-mers, about."""
        if self.sketch is None:
            return max(1, 2 * self.stride // (self.kmer - self.smer + 1))
        return min(self.sketch, self.window - self.kmer + 1)

    def most_features(self, windows: int) -> int:
        """Features of windows at most.

        Which of them are syncmers, and which a ``fraction`` keeps, is as good as random: a
        sixteenth is added to what is expected.
        """
        most, expected = self._features_times(windows, self.kept)
        return min(most, expected + expected // _SLACK + ALL_KEYS // _THIN_SCALE)

    def expected_features(self, bases: int) -> int:
        """Features of ``bases`` bases, about."""
        return self._features_times(-(-bases // self.stride), self.kept)[1]

    def _features_times(self, windows: int, kept: int) -> tuple[int, int]:
        """Features of windows at most and as expected, if ``kept`` of ``ALL_KEYS`` are kept."""
        most = expected = windows * (self.sketch or self.stride)
        if self.sketch is None:
            expected = -(-2 * most // (self.kmer - self.smer + 1))
        return most, -(-expected * kept // ALL_KEYS)

    @property
    def hit_scale(self) -> HitScale:
        """See there; ratios of its values are all that matters."""
        unit, per_kmer = self.stride, self.per_window
        if self.sketch is None:
            unit, per_kmer = self.kmer - self.smer + 1, 2
        if not self.is_thin:
            return HitScale(unit, unit, per_kmer)
        share = self.kept * _THIN_SCALE

        def thinned(value: int) -> int:
            return max(1, (value * share + ALL_KEYS // 2) // ALL_KEYS)

        return HitScale(unit * _THIN_SCALE, thinned(unit), thinned(per_kmer))
