"""What every run shares, the drivers of stages above all.

Read in this order: ``options`` (how a run goes, fallback), ``progress`` (and the steps that it
shows), ``statistics``; ``record``
(the driver of stages that decide record by record) and ``record_gpu`` (the same on a GPU);
``driver`` (of stages that need all of their input before they write), ``read_set``
(of those that hold all reads in memory), ``staged`` and ``gpu_run`` (their runs on either backend);
what reads the inputs again: ``kept``, and ``again``; ``adapters`` and ``trimming`` (reads that
continue into adapters). ``serve`` is for commands that another process runs.
"""
