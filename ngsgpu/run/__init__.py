"""What every run shares, the drivers of stages above all.

Read in this order: ``options`` (how a run goes, fallback), ``progress``, ``statistics``; ``record``
(the driver of stages that decide record by record) and ``record_gpu`` (the same on a GPU);
``read_set`` (the driver of stages that need all reads in memory), ``staged`` and ``gpu_run`` (their
runs on either backend), ``gpu_plan``, and what reads the inputs again: ``kept``, ``edited``,
``sections``; ``adapters`` and ``trimming`` (reads that continue into adapters). ``serve`` is for
commands that another process runs.
"""
