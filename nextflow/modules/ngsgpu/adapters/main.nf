process NGSGPU_ADAPTERS {
    tag "$meta.id"
    label 'process_low'

    conda "${moduleDir}/environment.yml"
    // A registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*')

    output:
    tuple val(meta), path("*.adapters.fa")  , emit: fasta
    tuple val(meta), path("*.adapters.json"), emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --interleaved, --phred-offset auto|33|64, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def files = reads instanceof List ? reads : [reads]
    def inputs = meta.single_end
        ? files.collect { file -> "-i ${file}" }
        : files.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def memory = task.memory ? "--memory ${task.memory.toMega()}M" : ''
    """
    ngsgpu adapters \\
        ${inputs.join(' ')} \\
        --fasta ${prefix}.adapters.fa \\
        --stats ${prefix}.adapters.json \\
        --threads ${task.cpus} ${memory} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.adapters.fa
    touch ${prefix}.adapters.json
    """
}
