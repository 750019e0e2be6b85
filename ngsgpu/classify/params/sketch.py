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

    Features are kept if the lower half of their key is below ``kept``.
    """

    kmer: int
    sketch: int
    window: int
    stride: int
    kept: int = ALL_KEYS


class HitScale(NamedTuple):
    """How hits are counted where they are compared with those that are expected.

    Any stretch of a reference sequence has ``per_window / stride`` features per k-mer, or
    ``fraction`` of that; a query looks up nearly all of them. One hit is chance: of the features of
    a read, one is often somewhere in a large database; of a fraction of them, that fraction. A hit
    counts ``unit``; those of chance count ``chance``, and a k-mer of a query adds ``per_window`` to
    what is expected.
    """

    unit: int
    chance: int
    per_window: int


@parameters
class SketchParameters:
    """How sequences are split into windows and windows sketched into features."""

    kmer: int = option(16, "K", "k-mer length, 4 to 16.", least=4, most=MAX_KMER)
    sketch: int = option(
        21, "N", "Features per window (sketch size), 1 to 32.", least=1, most=MAX_SKETCH
    )
    window: int = option(127, "N", "Window length in bases.", least=4, most=MAX_WINDOW)
    stride: int = option(
        112,
        "N",
        "Distance between window starts.",
        shown_default="window - kmer + 1",
        least=1,
    )
    fraction: float = option(
        1.0,
        "F",
        "Keep this fraction of all features, those with the lowest hashes; in steps of 1/65536.",
        least=LEAST_KEPT / ALL_KEYS,
        most=1,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", round(self.fraction * ALL_KEYS) / ALL_KEYS)
        if self.window < self.kmer:
            raise UsageError(f"`window` must be at least `kmer` ({self.kmer}), not {self.window}")
        if self.stride > self.window:
            raise UsageError(
                f"`stride` must be from 1 to `window` ({self.window}), not {self.stride}"
            )

    @property
    def rules(self) -> SketchRules:
        """The parameters in the kernels' form."""
        return SketchRules(self.kmer, self.sketch, self.window, self.stride, self.kept)

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
        """Features of a full window without repeated k-mers."""
        return min(self.sketch, self.window - self.kmer + 1)

    def most_features(self, windows: int) -> int:
        """Features of windows at most.

        Which of them a ``fraction`` keeps is as good as random: a sixteenth is added to what is
        expected.
        """
        most = windows * self.sketch
        if not self.is_thin:
            return most
        expected = -(-most * self.kept // ALL_KEYS)
        return min(most, expected + expected // _SLACK + ALL_KEYS // _THIN_SCALE)

    @property
    def hit_scale(self) -> HitScale:
        """See there; ratios of its values are all that matters."""
        if not self.is_thin:
            return HitScale(self.stride, self.stride, self.per_window)
        share = self.kept * _THIN_SCALE

        def thinned(value: int) -> int:
            return max(1, (value * share + ALL_KEYS // 2) // ALL_KEYS)

        return HitScale(self.stride * _THIN_SCALE, thinned(self.stride), thinned(self.per_window))
