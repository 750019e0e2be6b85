process NGSGPU_TRIM {
    tag "$meta.id"
    label 'process_low'
    label 'process_gpu'

    conda "${ task.accelerator ? "${moduleDir}/environment.gpu.yml" : "${moduleDir}/environment.yml" }"
    // One image for CPUs and GPUs; a registry is set in the config (docker.registry, apptainer.registry).
    container 'ngsgpu/ngsgpu:0.1.0'

    input:
    tuple val(meta), path(reads, stageAs: 'input*/*'), path(adapter_fasta)

    output:
    tuple val(meta), path("*.trimmed*.fastq.gz") , emit: reads
    tuple val(meta), path("*.unpaired*.fastq.gz"), emit: unpaired
    tuple val(meta), path("*.failed.fastq.gz")   , emit: failed
    tuple val(meta), path("*.fastp.json")        , emit: json
    tuple val(meta), path("*.trim.json")         , emit: stats
    tuple val("${task.process}"), val('ngsgpu'), eval("ngsgpu --version | sed 's/ngsgpu //'"), topic: versions, emit: versions_ngsgpu

    when:
    task.ext.when == null || task.ext.when

    script:
    // Further options, which docs/options.md explains:
    // --interleaved-in, --phred64, --report-title TEXT, --adapter-sequence SEQUENCE,
    // --adapter-sequence-r2 SEQUENCE, --detect-adapter-for-pe, --disable-adapter-trimming,
    // --trim-front1 N, --trim-tail1 N, --max-len1 N, --trim-front2 N, --trim-tail2 N, --max-len2 N,
    // --trim-poly-g, --disable-trim-poly-g, --poly-g-min-len N, --trim-poly-x, --poly-x-min-len N,
    // --cut-front, --cut-tail, --cut-right, --cut-window-size N, --cut-mean-quality Q,
    // --cut-front-window-size N, --cut-front-mean-quality Q, --cut-tail-window-size N,
    // --cut-tail-mean-quality Q, --cut-right-window-size N, --cut-right-mean-quality Q,
    // --disable-quality-filtering, --qualified-quality-phred Q, --unqualified-percent-limit N,
    // --n-base-limit N, --average-qual Q, --disable-length-filtering, --length-required N,
    // --length-limit N, --low-complexity-filter, --complexity-threshold N, --correction,
    // --overlap-len-require N, --overlap-diff-limit N, --overlap-diff-percent-limit N, --umi,
    // --umi-loc PLACE, --umi-len N, --umi-prefix TEXT, --umi-skip N, --dedup, --dup-calc-accuracy N,
    // --dont-eval-duplication, --fastp, --compress-level N, --quiet
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def files = reads instanceof List ? reads : [reads]
    def inputs = meta.single_end
        ? files.collect { file -> "-i ${file}" }
        : files.collate(2).collect { pair -> "-i ${pair[0]} -I ${pair[1]}" }
    def outputs = meta.single_end
        ? "--out1 ${prefix}.trimmed.fastq.gz"
        : "--out1 ${prefix}.trimmed_1.fastq.gz --out2 ${prefix}.trimmed_2.fastq.gz"
    def adapter_fasta_file = adapter_fasta ? "--adapter-fasta ${adapter_fasta}" : ''
    def device = task.accelerator ? "--backend cuda --gpus ${task.accelerator.request}" : '--backend cpu'
    """
    ngsgpu trim \\
        ${inputs.join(' ')} \\
        ${outputs} \\
        --unpaired1 ${prefix}.unpaired_1.fastq.gz \\
        --unpaired2 ${prefix}.unpaired_2.fastq.gz \\
        --failed-out ${prefix}.failed.fastq.gz \\
        --json ${prefix}.fastp.json \\
        ${adapter_fasta_file} \\
        --stats ${prefix}.trim.json \\
        --threads ${task.cpus} ${device} \\
        ${args}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    def sides = meta.single_end ? [''] : ['_1', '_2']
    """
    for side in ${sides.collect { side -> "'${side}'" }.join(' ')}; do
        echo "" | gzip > ${prefix}.trimmed\${side}.fastq.gz
    done
    echo "" | gzip > ${prefix}.unpaired_1.fastq.gz
    echo "" | gzip > ${prefix}.unpaired_2.fastq.gz
    echo "" | gzip > ${prefix}.failed.fastq.gz
    touch ${prefix}.fastp.json
    touch ${prefix}.trim.json
    """
}
