"""Attacks on the command line: bad input, damage, changes, kills, full disks, name clashes, soak.

``scripts/attack`` runs them. Each case is made from a seed, runs one command and is judged by one
rule (``judge``): exit status 0 with the whole right output, or 2 (1 for what fails while running)
with one line that says why and nothing left behind. Commands run in forks of a warm process, so
that a case takes a fraction of a second.

Read ``world`` (what there is to attack), ``forks`` (how a command is run), ``judge`` (what is
right), then the attacks, a file each (``damage`` has the ways to damage a file); ``main`` runs
them.
"""
