process NGSGPU_DBBUILD {
    tag "$meta.id"
    label 'process_high'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(references, stageAs: 'references/*'), path(taxonomy), path(map, stageAs: 'map*/*')

    output:
    tuple val(meta), path("*.db"), emit: db
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --partitions N, --partition-memory SIZE, --source KIND, --kmer K, --sketch N, --window N,
    // --stride N, --fraction F, --smer S, --max-locations N|all, --remove-overfull,
    // --ambiguous-rank RANK, --max-taxa N, --max-size SIZE, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def taxonomy_file = taxonomy ? "--taxonomy ${taxonomy}" : ''
    def map_files = (map instanceof List ? map : [map]).collect { file -> "--map ${file}" }
    def device = task.accelerator ? "--backend cuda --gpus ${task.accelerator.request}" : '--backend cpu'
    def memory = task.memory ? "--memory ${task.memory.toMega()}M" : ''
    """
    ngsgpu db build \\
        references \\
        --database ${prefix}.db \\
        ${taxonomy_file} \\
        ${map_files.join(' ')} \\
        --threads ${task.cpus} ${memory} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}.db
    touch ${prefix}.db/manifest.json
    """
}
