process NGSGPU_INDEXBUILD {
    tag "$meta.id"
    label 'process_high'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reference)

    output:
    tuple val(meta), path("*.index")     , emit: index
    tuple val(meta), path("*.index.json"), emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --format bwa|fm|bwt|sa, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def device = task.accelerator ? "--backend cuda --gpus ${task.accelerator.request}" : '--backend cpu'
    def memory = task.memory ? "--memory ${task.memory.toMega()}M" : ''
    """
    mkdir ${prefix}.index
    ngsgpu index build \\
        ${reference} \\
        --out ${prefix}.index/index \\
        --stats ${prefix}.index.json \\
        --threads ${task.cpus} ${memory} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}.index
    touch ${prefix}.index/index
    touch ${prefix}.index.json
    """
}
