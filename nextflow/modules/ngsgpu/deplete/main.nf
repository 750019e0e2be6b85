process NGSGPU_DEPLETE {
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
    tuple val(meta), path("*.depleted*.fastq.gz"), emit: reads
    tuple val(meta), path("*.deplete.json")      , emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --interleaved, --max-host X, --min-bases N|auto, --min-share X, --keep-host, --rename,
    // --compress-level N, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def files = reads instanceof List ? reads : [reads]
    def inputs = meta.single_end
        ? files.collect { file -> "-i ${file}" }
        : files.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def outputs = meta.single_end
        ? "--out1 ${prefix}.depleted.fastq.gz"
        : "--out1 ${prefix}.depleted_1.fastq.gz --out2 ${prefix}.depleted_2.fastq.gz"
    def device = task.accelerator ? "--backend cuda --gpus ${task.accelerator.request}" : '--backend cpu'
    """
    ngsgpu deplete \\
        --index ${index} \\
        ${inputs.join(' ')} \\
        ${outputs} \\
        --stats ${prefix}.deplete.json \\
        --threads ${task.cpus} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    def sides = meta.single_end ? [''] : ['_1', '_2']
    """
    for side in ${sides.collect { side -> "'${side}'" }.join(' ')}; do
        echo "" | gzip > ${prefix}.depleted\${side}.fastq.gz
    done
    touch ${prefix}.deplete.json
    """
}
