process NGSGPU_ASSEMBLE {
    tag "$meta.id"
    label 'process_high'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*'), path(single, stageAs: 'single*/*')

    output:
    tuple val(meta), path("*.contigs.fa.gz")    , emit: contigs
    tuple val(meta), path("*.assembly.gfa")     , emit: gfa
    tuple val(meta), path("*.scaffolds.fa.gz")  , emit: scaffolds
    tuple val(meta), path("*.coverage.bedgraph"), emit: coverage
    tuple val(meta), path("*.assemble.json")    , emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --interleaved, --method growth|euler, --min-abundance N|auto, --kmers K,K,...|auto,
    // --min-quality Q, --bubbles auto|errors|merge|keep, --min-contig N, --names ngsgpu|shovill,
    // --compress-level N, --quiet, --phred-offset auto|33|64
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def files = reads instanceof List ? reads : [reads]
    def inputs = meta.single_end
        ? files.collect { file -> "-i ${file}" }
        : files.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def single_files = (single instanceof List ? single : [single]).collect { file -> "--single ${file}" }
    def device = task.accelerator ? '--backend cuda --gpus 1' : '--backend cpu'
    def memory = task.memory ? "--memory ${task.memory.toMega()}M" : ''
    """
    ngsgpu assemble \\
        ${inputs.join(' ')} \\
        ${single_files.join(' ')} \\
        --out ${prefix}.contigs.fa.gz \\
        --gfa ${prefix}.assembly.gfa \\
        --scaffolds ${prefix}.scaffolds.fa.gz \\
        --coverage ${prefix}.coverage.bedgraph \\
        --stats ${prefix}.assemble.json \\
        --threads ${task.cpus} ${memory} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo "" | gzip > ${prefix}.contigs.fa.gz
    touch ${prefix}.assembly.gfa
    echo "" | gzip > ${prefix}.scaffolds.fa.gz
    touch ${prefix}.coverage.bedgraph
    touch ${prefix}.assemble.json
    """
}
