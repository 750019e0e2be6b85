"""Classify reads of metagenomes by the reference sequences they share sketches with (MetaCache).

Read in this order: ``params``; ``sketch`` and ``index`` (features, and where they are);
``references``, ``plan``, ``sketching``, ``build`` and ``grow`` (making databases); ``database`` and
``store`` (databases on disk); ``query``, ``calls`` and ``evidence`` (candidates, and what is made
of them); ``engine``, ``sample_run``, ``pipeline`` (reads in, files out); ``candidate_file`` and
``merge`` (partition by partition). ``taxonomy``, ``dump``, ``mapping`` and ``labels`` know taxa,
``outputs``, ``abundance`` and ``coverage`` what is written of them. ``gpu_build``, ``gpu_query``
and ``gpu_source`` do with ``build.cu`` and ``query.cu`` what ``sketching``, ``index`` and ``query``
do, and give the same.
"""
