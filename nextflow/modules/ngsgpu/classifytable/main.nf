process NGSGPU_CLASSIFYTABLE {
    tag "$meta.id"
    label 'process_low'

    conda "${moduleDir}/environment.yml"
    // A registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reports, stageAs: 'reports*/*')

    output:
    tuple val(meta), path("*.reads.tsv")     , emit: reads
    tuple val(meta), path("*.abundances.tsv"), emit: abundances
    tuple val(meta), path("*.taxpasta.tsv")  , emit: taxpasta
    tuple val(meta), path("*.biom")          , emit: biom
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --ranks LIST
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def reports_files = (reports instanceof List ? reports : [reports])
    """
    ngsgpu classify-table \\
        ${reports_files.join(' ')} \\
        --reads ${prefix}.reads.tsv \\
        --abundances ${prefix}.abundances.tsv \\
        --taxpasta ${prefix}.taxpasta.tsv \\
        --biom ${prefix}.biom \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.reads.tsv
    touch ${prefix}.abundances.tsv
    touch ${prefix}.taxpasta.tsv
    touch ${prefix}.biom
    """
}
