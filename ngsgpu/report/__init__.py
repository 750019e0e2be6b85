"""One HTML report a study, and MultiQC content for each sample.

Read ``model`` first (a study, its samples and their results), then ``stage`` (what the report has
to know of a stage) and ``sections`` (a file or folder for each of them). ``study`` reads the
manifest, ``layout`` finds files without one, ``summary`` says what concerns all stages, ``render``
makes the page through ``templates/``. ``multiqc`` stands by itself.
"""
