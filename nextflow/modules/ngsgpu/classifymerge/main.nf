process NGSGPU_CLASSIFYMERGE {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    // A registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(candidates, stageAs: 'candidates*/*')
    tuple val(meta2), path(database)

    output:
    tuple val(meta), path("*.reads.tsv.gz")      , emit: calls
    tuple val(meta), path("*.kraken2.report.txt"), emit: report
    tuple val(meta), path("*.krona.txt")         , emit: krona
    tuple val(meta), path("*.abundance.tsv")     , emit: abundance
    tuple val(meta), path("*.classify.json")     , emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --min-hits N, --hit-difference X, --candidates-kept N, --insert-size N, --lowest RANK,
    // --highest RANK, --ties first|ambiguous, --metacache, --columns LIST, --abundance-rank LIST,
    // --coverage-filter X, --species-identity X, --posterior P, --max-p-value P, --genome-share X,
    // --read-errors X|auto, --compress-level N, --no-verify, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def candidates_files = (candidates instanceof List ? candidates : [candidates])
    """
    ngsgpu classify-merge \\
        ${candidates_files.join(' ')} \\
        --database ${database} \\
        --out ${prefix}.reads.tsv.gz \\
        --report ${prefix}.kraken2.report.txt \\
        --krona ${prefix}.krona.txt \\
        --abundance ${prefix}.abundance.tsv \\
        --stats ${prefix}.classify.json \\
        --sample ${prefix} \\
        --threads ${task.cpus} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo "" | gzip > ${prefix}.reads.tsv.gz
    touch ${prefix}.kraken2.report.txt
    touch ${prefix}.krona.txt
    touch ${prefix}.abundance.tsv
    touch ${prefix}.classify.json
    """
}
