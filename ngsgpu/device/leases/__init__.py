"""Leases of GPUs: names that processes of one host take, several at once, all or none.

A name is taken by ``flock`` on a file in a directory shared by all users. The kernel releases it
when the last process that inherited the open file has ended, for whatever reason, so there are no
stale locks. Taking names and reading queues is guarded by one further lock, the gate, held only
briefly.

A waiting process leaves a ticket, itself a locked file. Free names are reserved for those who came
earlier, so that a request for many is not overtaken by a stream of requests for one.

Users need not trust each other: whatever someone puts into the directory or removes from it, others
at most wait. To this end a name is also held in the kernel, which decides if the files are of no
use.

The directory must be on a local file system: NFS may not propagate locks to other hosts.

Read ``lease`` first (GPUs), then ``folder`` (names), ``queue`` (tickets) and ``files`` (the files
behind both); ``record`` keeps a lease's times and the use of its GPUs; ``launcher`` runs other
programs inside a lease.
"""

from ngsgpu.device.leases.folder import FolderUnusableError, LockFolder
from ngsgpu.device.leases.lease import (
    Lease,
    holders,
    keep_gpus,
    lease_entry,
    lease_gpus,
    lock_folder,
    pool,
)
from ngsgpu.device.leases.record import utc

__all__ = [
    "FolderUnusableError",
    "Lease",
    "LockFolder",
    "holders",
    "keep_gpus",
    "lease_entry",
    "lease_gpus",
    "lock_folder",
    "pool",
    "utc",
]
