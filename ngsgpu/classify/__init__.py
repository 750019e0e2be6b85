"""Classify reads of metagenomes by the reference sequences they share sketches with (MetaCache).

Read in this order: ``params``; ``sketch`` and ``index`` (features, and where they are);
``references``, ``plan``, ``sketching``, ``build`` and ``grow`` (making databases); ``database`` and
``store`` (databases on disk); ``query``, ``calls`` and ``evidence`` (candidates, and what is made
of them); ``engine``, ``sample_run``, ``pipeline`` (reads in, files out); ``candidate_file`` and
``merge`` (partition by partition). ``taxonomy``, ``dump``, ``mapping`` and ``labels`` know taxa,
``outputs``, ``abundance`` and ``coverage`` what is written of them.

On GPUs, ``gpu_sketch_files`` does what ``sketching`` does, ``gpu_build`` what ``index`` does
(``gpu_build_plan`` and ``gpu_hash_table`` where memory is scarce), ``gpu_query`` and ``gpu_source``
what ``query`` does, with the kernels in ``sketch.cu``, ``build.cu``, ``hash_table.cu`` and
``query.cu``, and they give the same.
"""
