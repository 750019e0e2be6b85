"""Which GPUs a process may use: names that processes of one host take, several at once or none.

A name is taken by ``flock`` on a file of a folder that all users share. The kernel lets go of it
when the last process that inherited the open file has ended, however it ended, so nothing stale
is ever left. Names are taken and queues are read under one further lock, the gate, which is held
for moments only.

Who has to wait leaves a ticket, itself a locked file. What is free is set apart for those who
came earlier, so that who wants many is not passed by a stream of those who want one.

Users need not trust one another: whatever someone puts into the folder, or removes from it, makes
others wait at most. For that a name is also held in the kernel, which decides where files are no
help.

The folder must be on a file system of the host: NFS may not pass locks on to other hosts.

Read ``lease`` first (GPUs), then ``folder`` (names), ``queue`` (tickets) and ``files`` (what both
are made of); ``launcher`` runs other programs inside of a lease.
"""

from ngsgpu.device.leases.folder import FolderUnusableError, LockFolder
from ngsgpu.device.leases.lease import Lease, holders, keep_gpus, lease_gpus, lock_folder, pool

__all__ = [
    "FolderUnusableError",
    "Lease",
    "LockFolder",
    "holders",
    "keep_gpus",
    "lease_gpus",
    "lock_folder",
    "pool",
]
