"""FM indexes of texts of bases, whose suffixes GPUs sort bucket by bucket.

Texts may be as large as two bits a base of each GPU's memory, and some more, allow.

To be read in this order: ``text`` packs the bases; ``cover`` chooses places whose suffixes, ranked,
let any two suffixes be compared in a bounded number of steps; ``sort`` sorts the suffixes of a
bucket; ``plan`` says how large buckets may be; ``index`` ranks those of the cover, cuts the
suffixes into buckets, for one or several GPUs, and joins the results.
"""

from ngsgpu.suffix.bucket.index import fm_index_by_buckets
from ngsgpu.suffix.bucket.plan import BucketPlan, plan_buckets

__all__ = ["BucketPlan", "fm_index_by_buckets", "plan_buckets"]
