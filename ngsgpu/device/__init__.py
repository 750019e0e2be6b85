"""What the machine has and what of it a run may use.

``memory`` knows sizes, memory and CPUs, limits of containers and schedulers included;
``gpus`` lists the GPUs, ``inventory`` programs and libraries; ``backend`` decides between CPU and
CUDA. Algorithms are given the answers and never ask themselves.
"""
