process NGSGPU_EXTRACT {
    tag "$meta.id"
    label 'process_low'

    conda "${moduleDir}/environment.yml"
    // A registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*'), path(database), val(taxa)
    tuple val(meta2), path(calls)

    output:
    tuple val(meta), path("*.extracted*.fastq.gz"), emit: reads
    tuple val(meta), path("*.extract.json")       , emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --interleaved, --exclude TAXID,..., --with-children, --invert, --quiet, --compress-level N
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def files = reads instanceof List ? reads : [reads]
    def inputs = meta.single_end
        ? files.collect { file -> "-i ${file}" }
        : files.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def outputs = meta.single_end
        ? "--out1 ${prefix}.extracted.fastq.gz"
        : "--out1 ${prefix}.extracted_1.fastq.gz --out2 ${prefix}.extracted_2.fastq.gz"
    def database_file = database ? "--database ${database}" : ''
    """
    ngsgpu extract \\
        --calls ${calls} \\
        ${inputs.join(' ')} \\
        ${outputs} \\
        ${database_file} \\
        --stats ${prefix}.extract.json \\
        --taxon ${taxa} \\
        --threads ${task.cpus} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    def sides = meta.single_end ? [''] : ['_1', '_2']
    """
    for side in ${sides.collect { side -> "'${side}'" }.join(' ')}; do
        echo "" | gzip > ${prefix}.extracted\${side}.fastq.gz
    done
    touch ${prefix}.extract.json
    """
}
