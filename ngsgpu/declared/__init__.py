"""Parameters declared once: how they are given, which values they have, which files they name.

Read in this order: ``options`` (one parameter), ``roles`` (of files), ``parameters`` (all those of
a command), ``values`` (ranges), ``outputs`` (a command writes no file that it does not declare).
Only the standard library is imported, so that the command line starts at once.
"""
