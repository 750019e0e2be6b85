// Correct, merge, extend and classify the samples of a sheet with ngsgpu.
//
//   nextflow run nextflow -profile docker --input samples.csv --outdir results
//
// params.input has the columns sample, fastq_1 and fastq_2 (empty for single reads), separated by
// commas, or by tabs in a file named .tsv; a sample's lanes are rows of one name.

include { NGSGPU_CORRECT  } from './modules/ngsgpu/correct/main'
include { NGSGPU_MERGE    } from './modules/ngsgpu/merge/main'
include { NGSGPU_EXTEND   } from './modules/ngsgpu/extend/main'
include { NGSGPU_DBBUILD  } from './modules/ngsgpu/dbbuild/main'
include { NGSGPU_CLASSIFY } from './modules/ngsgpu/classify/main'

workflow {
    if (!params.input || !params.outdir) {
        error("give --input SHEET and --outdir DIRECTORY")
    }
    if (params.database && params.references) {
        error("give --database or --references, not both")
    }
    reads = channel.fromPath(params.input, checkIfExists: true)
        .splitCsv(header: true, sep: params.input.toString().endsWith('.tsv') ? '\t' : ',', strip: true)
        .map { row ->
            def files = [row.fastq_1, row.fastq_2].findAll { name -> name }
            [row.sample, files.collect { name -> file(name, checkIfExists: true) }]
        }
        .groupTuple()
        .map { sample, lanes ->
            if (lanes.collect { lane -> lane.size() }.unique().size() > 1) {
                error("${params.input}: ${sample} has pairs and single reads; give them different names")
            }
            [[id: sample, single_end: lanes[0].size() == 1], lanes.collectMany { lane -> lane }]
        }

    database = channel.empty()
    if (params.database) {
        database = channel.of([[id: 'database'], file(params.database, checkIfExists: true)])
    }
    if (params.references) {
        references = channel.fromPath(params.references, checkIfExists: true)
            .collect()
            .map { files ->
                def taxonomy = params.taxonomy ? file(params.taxonomy, checkIfExists: true) : []
                def map = params.map ? file(params.map, checkIfExists: true) : []
                [[id: 'references'], files, taxonomy, map]
            }
        NGSGPU_DBBUILD(references)
        database = NGSGPU_DBBUILD.out.db
    }

    NGSGPU_CORRECT(reads)
    corrected = NGSGPU_CORRECT.out.reads
    pairs = corrected.filter { meta, _files -> !meta.single_end }
    if (params.merge) {
        NGSGPU_MERGE(pairs)
    }
    if (params.extend) {
        NGSGPU_EXTEND(pairs)
    }
    // first() makes a value of the database, which all samples share; without one nothing is done.
    NGSGPU_CLASSIFY(params.classify_corrected ? corrected : reads, database.first())

    channel.topic('versions')
        .map { process, tool, version -> "\"${process}\":\n    ${tool}: ${version.trim()}\n" }
        .unique()
        .collectFile(name: 'versions.yml', storeDir: params.outdir, sort: true)
}
