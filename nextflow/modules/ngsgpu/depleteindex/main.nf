process NGSGPU_DEPLETEINDEX {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    // A registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(references, stageAs: 'references*/*'), path(exclude, stageAs: 'exclude*/*')

    output:
    tuple val(meta), path("*.idx")     , emit: index
    tuple val(meta), path("*.idx.json"), emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --keep-kmers, --kmer K, --one-in N, --max-repeats N, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def references_files = (references instanceof List ? references : [references])
    def exclude_files = (exclude instanceof List ? exclude : [exclude]).collect { file -> "--exclude ${file}" }
    def memory = task.memory ? "--memory ${task.memory.toMega()}M" : ''
    """
    ngsgpu deplete-index \\
        ${references_files.join(' ')} \\
        --out ${prefix}.idx \\
        ${exclude_files.join(' ')} \\
        --stats ${prefix}.idx.json \\
        --threads ${task.cpus} ${memory} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.idx
    touch ${prefix}.idx.json
    """
}
