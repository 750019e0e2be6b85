process NGSGPU_CORRECT {
    tag "$meta.id"
    label 'process_medium'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*')

    output:
    tuple val(meta), path("*.corrected*.fastq.gz"), emit: reads
    tuple val(meta), path("*.correct.json")       , emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --interleaved, --method msa|spectrum, --coverage X, --kmer K, --hashes N, --seed N,
    // --quality-bits 8|2|1|0, --anchor-threshold P, --candidate-threshold P, --classic,
    // --keep-variants N, --mask, --quality, --min-count N, --rule search|voting|exhaustive,
    // --filter exact|bloom, --mutations N, --max-changes N, --trim, --compress-level N, --quiet,
    // --phred-offset auto|33|64
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def files = reads instanceof List ? reads : [reads]
    def inputs = meta.single_end
        ? files.collect { file -> "-i ${file}" }
        : files.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def outputs = meta.single_end
        ? "--out1 ${prefix}.corrected.fastq.gz"
        : "--out1 ${prefix}.corrected_1.fastq.gz --out2 ${prefix}.corrected_2.fastq.gz"
    def device = task.accelerator ? "--backend cuda --gpus ${task.accelerator.request}" : '--backend cpu'
    def memory = task.memory ? "--memory ${task.memory.toMega()}M" : ''
    """
    ngsgpu correct \\
        ${inputs.join(' ')} \\
        ${outputs} \\
        --stats ${prefix}.correct.json \\
        --threads ${task.cpus} ${memory} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    def sides = meta.single_end ? [''] : ['_1', '_2']
    """
    for side in ${sides.collect { side -> "'${side}'" }.join(' ')}; do
        echo "" | gzip > ${prefix}.corrected\${side}.fastq.gz
    done
    touch ${prefix}.correct.json
    """
}
