"""Reports in MetaPhlAn's style: what Kraken 2 (2.1.2) wrote of the same calls; their lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.classify.outputs.mpa import mpa_report
from ngsgpu.classify.outputs.reports import read_trees
from ngsgpu.classify.outputs.tree import MAIN_CODES, count_tree
from ngsgpu.taxonomy.ranks import rank_name
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support.classify import trees
from tests.support.properties import examples

REPORT = """\
 17.17	206	206	U	0	unclassified
 82.83	994	0	R	1	root
 82.83	994	0	D	2	  Bacteria
 62.92	755	0	P	3	    Proteo
 62.92	755	0	C	5	      Gamma
 62.92	755	0	C1	9	        Some clade
 62.92	755	1	F	6	          Enterobacteriaceae
 36.00	432	0	G	101	            Escherichia
 36.00	432	197	S	102	              Escherichia coli
  7.75	93	93	S1	103	                escherichia_coli__IAI39
  6.67	80	80	S1	105	                escherichia_coli__O157_H7_Sakai
  5.17	62	62	S1	104	                escherichia_coli__K_12_MG1655
 14.83	178	0	G	106	            Salmonella
 14.83	178	0	S	107	              Salmonella enterica
 14.83	178	178	S1	108	                salmonella_enterica__Typhimurium_LT2
 12.00	144	0	G	109	            Shigella
 12.00	144	0	S	110	              Shigella flexneri
 12.00	144	144	S1	111	                shigella_flexneri__2a_ATCC_29903
 19.92	239	0	K	10	    Kings
 19.92	239	0	P	4	      Bacillota
 19.92	239	0	C	7	        Bacilli
 14.58	175	0	G	112	          Staphylococcus
 13.58	163	138	S	113	            Staphylococcus aureus
  2.00	24	24	S1	114	              staphylococcus_aureus__DSM_20231
  0.08	1	1	S1	115	              staphylococcus_aureus__USA300_TCH1516
  1.00	12	0	S	116	            Staphylococcus epidermidis
  1.00	12	12	S1	117	              staphylococcus_epidermidis__NBRC_100911
  5.33	64	0	G	118	          Streptococcus
  2.08	25	0	S	121	            Streptococcus pneumoniae
  2.08	25	25	S1	122	              streptococcus_pneumoniae__NCTC7465
  1.33	16	0	S	123	            Streptococcus pyogenes
  1.33	16	16	S1	124	              streptococcus_pyogenes__FDAARGOS_774
  1.00	12	0	G1	200	            Streptococcus mitis group
  1.00	12	0	S	119	              Streptococcus mitis
  1.00	12	12	S1	120	                streptococcus_mitis__NCTC_12261
  0.92	11	0	S	125	            Streptococcus suis
  0.92	11	11	S1	126	              streptococcus_suis__SRD478
"""
MPA = """\
d__Bacteria	994
d__Bacteria|p__Proteo	755
d__Bacteria|p__Proteo|c__Gamma	755
d__Bacteria|p__Proteo|c__Gamma|f__Enterobacteriaceae	755
d__Bacteria|p__Proteo|c__Gamma|f__Enterobacteriaceae|g__Escherichia	432
d__Bacteria|p__Proteo|c__Gamma|f__Enterobacteriaceae|g__Escherichia|s__Escherichia coli	432
d__Bacteria|p__Proteo|c__Gamma|f__Enterobacteriaceae|g__Salmonella	178
d__Bacteria|p__Proteo|c__Gamma|f__Enterobacteriaceae|g__Salmonella|s__Salmonella enterica	178
d__Bacteria|p__Proteo|c__Gamma|f__Enterobacteriaceae|g__Shigella	144
d__Bacteria|p__Proteo|c__Gamma|f__Enterobacteriaceae|g__Shigella|s__Shigella flexneri	144
d__Bacteria|k__Kings	239
d__Bacteria|k__Kings|p__Bacillota	239
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli	239
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli|g__Staphylococcus	175
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli|g__Staphylococcus|s__Staphylococcus aureus	163
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli|g__Staphylococcus|s__Staphylococcus epidermidis	12
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli|g__Streptococcus	64
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli|g__Streptococcus|s__Streptococcus pneumoniae	25
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli|g__Streptococcus|s__Streptococcus pyogenes	16
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli|g__Streptococcus|s__Streptococcus mitis	12
d__Bacteria|k__Kings|p__Bacillota|c__Bacilli|g__Streptococcus|s__Streptococcus suis	11
"""


def test_kraken_writes_the_same(tmp_path: Path) -> None:
    (tmp_path / "s.kreport").write_text(REPORT)
    ((_, tree),) = read_trees([tmp_path / "s.kreport"])
    assert mpa_report(tree) == MPA


@given(taxonomy=trees.taxonomies(), data=st.data())
@examples(60)
def test_a_line_for_each_taxon_of_a_main_rank(taxonomy: Taxonomy, data: st.DataObject) -> None:
    size = len(taxonomy)
    direct = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    tree = count_tree(taxonomy, direct, 3)
    expected = []
    for node, _ in tree.walk():
        lineage = [
            f"{MAIN_CODES[rank].lower()}__{taxonomy.name(above)}"
            for above in reversed(taxonomy.lineage(node))
            if (rank := rank_name(int(taxonomy.rank[above]))) in MAIN_CODES
        ]
        if rank_name(int(taxonomy.rank[node])) in MAIN_CODES:
            expected.append(f"{'|'.join(lineage)}\t{tree.clade[node]}")
    assert mpa_report(tree).splitlines() == expected
