process NGSGPU_INDEXQUERY {
    tag "$meta.id"
    label 'process_medium'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*')
    tuple val(meta2), path(index)

    output:
    tuple val(meta), path("*.paf")         , emit: matches
    tuple val(meta), path("*.matches.json"), emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --min-length N, --whole, --max-places N, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def files = reads instanceof List ? reads : [reads]
    def inputs = files.collect { file -> "-i ${file}" }
    def device = task.accelerator ? '--backend cuda --gpus 1' : '--backend cpu'
    """
    ngsgpu index query \\
        ${index}/index \\
        ${inputs.join(' ')} \\
        --out ${prefix}.paf \\
        --stats ${prefix}.matches.json \\
        --threads ${task.cpus} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.paf
    touch ${prefix}.matches.json
    """
}
