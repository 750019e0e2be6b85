"""GPUs and memory: what the machine has, what a run may use, and how to work with GPUs.

``memory`` reports sizes, memory and CPUs, respecting limits of containers and schedulers; ``gpus``
lists the GPUs, ``inventory`` programs and libraries (``diagnosis`` reports them all); ``backend``
chooses between CPU and CUDA and leases GPUs (``leases``). Algorithms get the results passed in.

Work on GPUs goes through ``kernels`` (``compiler``, ``structs``), ``team`` (several GPUs), ``plan``
and ``arena`` (GPU memory), ``pinned`` (host memory for copies) and ``sort``; ``startup``
initialises CUDA during imports, ``errors`` translates CUDA's errors.
"""
