"""A colour-blind safe palette.

From M. Okabe and K. Ito, Color Universal Design (2008), with sky blue and orange slightly darkened
for white paper.
"""

BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#009e73"
AMBER = "#e69f00"
SKY = "#56b4e9"
PURPLE = "#cc79a7"
GREY = "#8a8f98"
INK = "#1f2933"

BEFORE = ORANGE
"""Uncorrected reads and everything derived from them."""

AFTER = BLUE
"""Corrected reads and everything derived from them."""

LIGHT = "#c3c9d1"
MUTED = "#66707c"
GRID = "#e4e7eb"

CYCLE = (GREEN, PURPLE, AMBER, SKY, GREY, INK)
"""Colours of categories, in this order; none of them means before or after."""

SAMPLES = (*CYCLE, "#882255", "#999933", "#332288", "#44aa99", "#ddcc77", "#aa4499")
"""Colours of samples; the second half is of P. Tol's muted palette."""

BASES = {"A": GREEN, "C": PURPLE, "G": AMBER, "T": SKY, "N": GREY}
"""Colours of bases."""
