"""One HTML report per study, and MultiQC content per sample.

Read ``model`` first (a study, its samples and their results), then ``stage`` (the interface of a
stage to the report) and ``sections`` (a file or folder for each of them). ``study`` reads the
manifest, ``layout`` finds files without one, ``summary`` covers all stages together, ``render``
makes the page from ``templates/``. ``multiqc`` is independent.
"""
