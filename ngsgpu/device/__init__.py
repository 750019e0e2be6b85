"""GPUs and memory: what the machine has, what a run may use, and how GPUs are worked with.

``memory`` knows sizes, memory and CPUs, limits of containers and schedulers included; ``gpus``
lists the GPUs, ``inventory`` programs and libraries (``diagnosis`` reports them all); ``backend``
decides between CPU and CUDA and leases GPUs (``leases``). Algorithms are given the answers and
never ask themselves.

Work on GPUs goes through ``kernels`` (``compiler``, ``structs``), ``team`` (several GPUs), ``plan``
and ``arena`` (their memory), ``pinned`` (host memory to copy from) and ``sort``; ``startup`` makes
CUDA ready while Python imports, ``errors`` words what CUDA reports.
"""
