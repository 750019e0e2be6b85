process NGSGPU_EXTEND {
    tag "$meta.id"
    label 'process_medium'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*')

    output:
    tuple val(meta), path("*.extended.fastq.gz")       , emit: extended
    tuple val(meta), path("*.remaining_{1,2}.fastq.gz"), emit: remaining
    tuple val(meta), path("*.extend.json")             , emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --interleaved, --library pe|mp, --kmer K, --hashes N, --seed N, --quality-bits 8|2|1|0,
    // --strict 0|1|2, --insert-size N, --insert-sd N, --min-length N, --max-length N, --step N,
    // --min-reads N, --min-overlap N, --min-overlap-ratio X, --max-mismatch-ratio X,
    // --gap-mismatches N, --confirm-ratio X, --confirm-matches X, --merge-overlap N, --outward,
    // --gap-quality Q, --fasta, --include-remaining, --unsorted, --compress-level N, --quiet,
    // --phred-offset auto|33|64
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def inputs = reads.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def device = task.accelerator ? "--backend cuda --gpus ${task.accelerator.request}" : '--backend cpu'
    def memory = task.memory ? "--memory ${task.memory.toMega()}M" : ''
    """
    ngsgpu extend \\
        ${inputs.join(' ')} \\
        --out ${prefix}.extended.fastq.gz \\
        --remaining1 ${prefix}.remaining_1.fastq.gz \\
        --remaining2 ${prefix}.remaining_2.fastq.gz \\
        --stats ${prefix}.extend.json \\
        --threads ${task.cpus} ${memory} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo "" | gzip > ${prefix}.extended.fastq.gz
    echo "" | gzip > ${prefix}.remaining_1.fastq.gz
    echo "" | gzip > ${prefix}.remaining_2.fastq.gz
    touch ${prefix}.extend.json
    """
}
