process NGSGPU_KMERSCOUNT {
    tag "$meta.id"
    label 'process_medium'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*')

    output:
    tuple val(meta), path("*.kmers")     , emit: database
    tuple val(meta), path("*.histo")     , emit: histo
    tuple val(meta), path("*.kmers.json"), emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --kmer K, --min-quality Q, --min-count N, --count-bits 16|32, --quiet, --phred-offset auto|33|64
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def files = reads instanceof List ? reads : [reads]
    def inputs = meta.single_end
        ? files.collect { file -> "-i ${file}" }
        : files.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def device = task.accelerator ? "--backend cuda --gpus ${task.accelerator.request}" : '--backend cpu'
    def memory = task.memory ? "--memory ${task.memory.toMega()}M" : ''
    """
    ngsgpu kmers count \\
        ${inputs.join(' ')} \\
        --out ${prefix}.kmers \\
        --histo ${prefix}.histo \\
        --stats ${prefix}.kmers.json \\
        --threads ${task.cpus} ${memory} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}.kmers
    touch ${prefix}.kmers/manifest.json
    touch ${prefix}.histo
    touch ${prefix}.kmers.json
    """
}
