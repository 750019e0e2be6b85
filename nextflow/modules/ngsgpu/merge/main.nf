process NGSGPU_MERGE {
    tag "$meta.id"
    label 'process_low'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*')

    output:
    tuple val(meta), path("*.merged.fastq.gz")        , emit: merged
    tuple val(meta), path("*.unmerged_{1,2}.fastq.gz"), emit: unmerged
    tuple val(meta), path("*.inserts.txt")            , emit: inserts
    tuple val(meta), path("*.merge.json")             , emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --interleaved-in, --interleaved-out, --flash, --phred-offset auto|33|64,
    // --overlap likelihood|flash, --min-overlap N, --max-overlap N|auto, --max-mismatch-density X,
    // --allow-outies, --quality calibrated|edgar|flash, --cap-mismatch-quals, --max-quality Q,
    // --mask-ties, --trim-adapters, --correct-only, --read-length N, --fragment-length N,
    // --fragment-deviation N, --compress-level N, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def inputs = reads.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def device = task.accelerator ? '--backend cuda --gpus 1' : '--backend cpu'
    """
    ngsgpu merge \\
        ${inputs.join(' ')} \\
        --out ${prefix}.merged.fastq.gz \\
        --unmerged1 ${prefix}.unmerged_1.fastq.gz \\
        --unmerged2 ${prefix}.unmerged_2.fastq.gz \\
        --ihist ${prefix}.inserts.txt \\
        --stats ${prefix}.merge.json \\
        --threads ${task.cpus} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo "" | gzip > ${prefix}.merged.fastq.gz
    echo "" | gzip > ${prefix}.unmerged_1.fastq.gz
    echo "" | gzip > ${prefix}.unmerged_2.fastq.gz
    touch ${prefix}.inserts.txt
    touch ${prefix}.merge.json
    """
}
