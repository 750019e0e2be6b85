@SampleID:mini_cami
@Version:0.10.0
@Ranks:superkingdom|phylum|class|order|family|genus|species
@@TAXID	RANK	TAXPATH	TAXPATHSN	PERCENTAGE
2	superkingdom	2	Bacteria	96.5672149518
2157	superkingdom	2157	Archaea	3.4327850482
1224	phylum	2|1224	Bacteria|Proteobacteria	45.4056109177
1239	phylum	2|1239	Bacteria|Firmicutes	22.8038580062
976	phylum	2|976	Bacteria|Bacteroidetes	11.1047744827
201174	phylum	2|201174	Bacteria|Actinobacteria	0.3031576420
200783	phylum	2|200783	Bacteria|Aquificae	0.1010525473
1236	class	2|1224|1236	Bacteria|Proteobacteria|Gammaproteobacteria	43.1844559171
91061	class	2|1239|91061	Bacteria|Firmicutes|Bacilli	17.2509705047
200643	class	2|976|200643	Bacteria|Bacteroidetes|Bacteroidia	11.1047744827
186801	class	2|1239|186801	Bacteria|Firmicutes|Clostridia	5.5528875015
28216	class	2|1224|28216	Bacteria|Proteobacteria|Betaproteobacteria	2.2211550006
1760	class	2|201174|1760	Bacteria|Actinobacteria|Actinobacteria	0.3031576420
187857	class	2|200783|187857	Bacteria|Aquificae|Aquificae	0.1010525473
91347	order	2|1224|1236|91347	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales	33.4103733942
171549	order	2|976|200643|171549	Bacteria|Bacteroidetes|Bacteroidia|Bacteroidales	11.1047744827
186826	order	2|1239|91061|186826	Bacteria|Firmicutes|Bacilli|Lactobacillales	9.3768759755
1385	order	2|1239|91061|1385	Bacteria|Firmicutes|Bacilli|Bacillales	7.8740945292
72274	order	2|1224|1236|72274	Bacteria|Proteobacteria|Gammaproteobacteria|Pseudomonadales	6.2592548125
186802	order	2|1239|186801|186802	Bacteria|Firmicutes|Clostridia|Clostridiales	5.5528875015
135625	order	2|1224|1236|135625	Bacteria|Proteobacteria|Gammaproteobacteria|Pasteurellales	3.5148277104
206351	order	2|1224|28216|206351	Bacteria|Proteobacteria|Betaproteobacteria|Neisseriales	2.2211550006
85007	order	2|201174|1760|85007	Bacteria|Actinobacteria|Actinobacteria|Corynebacteriales	0.3031576420
32069	order	2|200783|187857|32069	Bacteria|Aquificae|Aquificae|Aquificales	0.1010525473
543	family	2|1224|1236|91347|543	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae	30.8890623124
815	family	2|976|200643|171549|815	Bacteria|Bacteroidetes|Bacteroidia|Bacteroidales|Bacteroidaceae	11.1047744827
31979	family	2|1239|186801|186802|31979	Bacteria|Firmicutes|Clostridia|Clostridiales|Clostridiaceae	5.5528875015
135621	family	2|1224|1236|72274|135621	Bacteria|Proteobacteria|Gammaproteobacteria|Pseudomonadales|Pseudomonadaceae	5.0476247649
81852	family	2|1239|91061|186826|81852	Bacteria|Firmicutes|Bacilli|Lactobacillales|Enterococcaceae	4.9355664946
90964	family	2|1239|91061|1385|90964	Bacteria|Firmicutes|Bacilli|Bacillales|Staphylococcaceae	4.8455196702
1300	family	2|1239|91061|186826|1300	Bacteria|Firmicutes|Bacilli|Lactobacillales|Streptococcaceae	4.4413094809
712	family	2|1224|1236|135625|712	Bacteria|Proteobacteria|Gammaproteobacteria|Pasteurellales|Pasteurellaceae	3.5148277104
186817	family	2|1239|91061|1385|186817	Bacteria|Firmicutes|Bacilli|Bacillales|Bacillaceae	3.0285748589
1903411	family	2|1224|1236|91347|1903411	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Yersiniaceae	2.5213110818
481	family	2|1224|28216|206351|481	Bacteria|Proteobacteria|Betaproteobacteria|Neisseriales|Neisseriaceae	2.2211550006
468	family	2|1224|1236|72274|468	Bacteria|Proteobacteria|Gammaproteobacteria|Pseudomonadales|Moraxellaceae	1.2116300476
1762	family	2|201174|1760|85007|1762	Bacteria|Actinobacteria|Actinobacteria|Corynebacteriales|Mycobacteriaceae	0.3031576420
64898	family	2|200783|187857|32069|64898	Bacteria|Aquificae|Aquificae|Aquificales|Aquificaceae	0.1010525473
561	genus	2|1224|1236|91347|543|561	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae|Escherichia	15.1438748149
816	genus	2|976|200643|171549|815|816	Bacteria|Bacteroidetes|Bacteroidia|Bacteroidales|Bacteroidaceae|Bacteroides	11.1047744827
570	genus	2|1224|1236|91347|543|570	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae|Klebsiella	9.6870372594
239934	genus	2|||||239934	Bacteria|||||Akkermansia	9.0857245768
590	genus	2|1224|1236|91347|543|590	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae|Salmonella	6.0581502381
1485	genus	2|1239|186801|186802|31979|1485	Bacteria|Firmicutes|Clostridia|Clostridiales|Clostridiaceae|Clostridium	5.5528875015
286	genus	2|1224|1236|72274|135621|286	Bacteria|Proteobacteria|Gammaproteobacteria|Pseudomonadales|Pseudomonadaceae|Pseudomonas	5.0476247649
1350	genus	2|1239|91061|186826|81852|1350	Bacteria|Firmicutes|Bacilli|Lactobacillales|Enterococcaceae|Enterococcus	4.9355664946
1279	genus	2|1239|91061|1385|90964|1279	Bacteria|Firmicutes|Bacilli|Bacillales|Staphylococcaceae|Staphylococcus	4.8455196702
1301	genus	2|1239|91061|186826|1300|1301	Bacteria|Firmicutes|Bacilli|Lactobacillales|Streptococcaceae|Streptococcus	4.4413094809
724	genus	2|1224|1236|135625|712|724	Bacteria|Proteobacteria|Gammaproteobacteria|Pasteurellales|Pasteurellaceae|Haemophilus	3.5148277104
2160	genus	2157|||||2160	Archaea|||||Methanobacterium	3.4327850482
1386	genus	2|1239|91061|1385|186817|1386	Bacteria|Firmicutes|Bacilli|Bacillales|Bacillaceae|Bacillus	3.0285748589
629	genus	2|1224|1236|91347|1903411|629	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Yersiniaceae|Yersinia	2.5213110818
482	genus	2|1224|28216|206351|481|482	Bacteria|Proteobacteria|Betaproteobacteria|Neisseriales|Neisseriaceae|Neisseria	2.2211550006
286801	genus	2|||||286801	Bacteria|||||Segniliparus	2.0190499060
544	genus	2|||||544	Bacteria|||||Citrobacter	2.0080441830
475	genus	2|||||475	Bacteria|||||Moraxella	1.8179453316
469	genus	2|1224|1236|72274|468|469	Bacteria|Proteobacteria|Gammaproteobacteria|Pseudomonadales|Moraxellaceae|Acinetobacter	1.2116300476
1716	genus	2|||||1716	Bacteria|||||Corynebacterium	1.0095249530
106589	genus	2|||||106589	Bacteria|||||Cupriavidus	0.7063673110
1763	genus	2|201174|1760|85007|1762|1763	Bacteria|Actinobacteria|Actinobacteria|Corynebacteriales|Mycobacteriaceae|Mycobacterium	0.3031576420
1142	genus	2|||||1142	Bacteria|||||Synechocystis	0.2021050946
2713	genus	2|200783|187857|32069|64898|2713	Bacteria|Aquificae|Aquificae|Aquificales|Aquificaceae|Aquifex	0.1010525473
562	species	2|1224|1236|91347|543|561|562	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae|Escherichia|Escherichia coli	15.1438748149
817	species	2|976|200643|171549|815|816|817	Bacteria|Bacteroidetes|Bacteroidia|Bacteroidales|Bacteroidaceae|Bacteroides|Bacteroides fragilis	11.1047744827
239935	species	2|||||239934|239935	Bacteria|||||Akkermansia|Akkermansia muciniphila	9.0857245768
573	species	2|1224|1236|91347|543|570|573	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae|Klebsiella|Klebsiella pneumoniae	7.5719374075
28901	species	2|1224|1236|91347|543|590|28901	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae|Salmonella|Salmonella enterica	6.0581502381
1502	species	2|1239|186801|186802|31979|1485|1502	Bacteria|Firmicutes|Clostridia|Clostridiales|Clostridiaceae|Clostridium|Clostridium perfringens	5.5528875015
287	species	2|1224|1236|72274|135621|286|287	Bacteria|Proteobacteria|Gammaproteobacteria|Pseudomonadales|Pseudomonadaceae|Pseudomonas|Pseudomonas aeruginosa	5.0476247649
1351	species	2|1239|91061|186826|81852|1350|1351	Bacteria|Firmicutes|Bacilli|Lactobacillales|Enterococcaceae|Enterococcus|Enterococcus faecalis	4.5333573458
1280	species	2|1239|91061|1385|90964|1279|1280	Bacteria|Firmicutes|Bacilli|Bacillales|Staphylococcaceae|Staphylococcus|Staphylococcus aureus	4.0380998119
727	species	2|1224|1236|135625|712|724|727	Bacteria|Proteobacteria|Gammaproteobacteria|Pasteurellales|Pasteurellaceae|Haemophilus|Haemophilus influenzae	3.5148277104
2162	species	2157|||||2160|2162	Archaea|||||Methanobacterium|Methanobacterium formicicum	3.4327850482
1392	species	2|1239|91061|1385|186817|1386|1392	Bacteria|Firmicutes|Bacilli|Bacillales|Bacillaceae|Bacillus|Bacillus anthracis	3.0285748589
1313	species	2|1239|91061|186826|1300|1301|1313	Bacteria|Firmicutes|Bacilli|Lactobacillales|Streptococcaceae|Streptococcus|Streptococcus pneumoniae	2.8264697643
28152	species	2|1224|1236|91347|1903411|629|28152	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Yersiniaceae|Yersinia|Yersinia kristensenii	2.5213110818
487	species	2|1224|28216|206351|481|482|487	Bacteria|Proteobacteria|Betaproteobacteria|Neisseriales|Neisseriaceae|Neisseria|Neisseria meningitidis	2.2211550006
286802	species	2|||||286801|286802	Bacteria|||||Segniliparus|Segniliparus rotundus	2.0190499060
546	species	2|||||544|546	Bacteria|||||Citrobacter|Citrobacter freundii	2.0080441830
480	species	2|||||475|480	Bacteria|||||Moraxella|Moraxella catarrhalis	1.8179453316
28037	species	2|1239|91061|186826|1300|1301|28037	Bacteria|Firmicutes|Bacilli|Lactobacillales|Streptococcaceae|Streptococcus|Streptococcus mitis	1.6148397167
244366	species	2|1224|1236|91347|543|570|244366	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae|Klebsiella|Klebsiella variicola	1.5137871693
470	species	2|1224|1236|72274|468|469|470	Bacteria|Proteobacteria|Gammaproteobacteria|Pseudomonadales|Moraxellaceae|Acinetobacter|Acinetobacter baumannii	1.2116300476
1718	species	2|||||1716|1718	Bacteria|||||Corynebacterium|Corynebacterium glutamicum	1.0095249530
1282	species	2|1239|91061|1385|90964|1279|1282	Bacteria|Firmicutes|Bacilli|Bacillales|Staphylococcaceae|Staphylococcus|Staphylococcus epidermidis	0.8074198583
82541	species	2|||||106589|82541	Bacteria|||||Cupriavidus|Cupriavidus gilardii	0.7063673110
571	species	2|1224|1236|91347|543|570|571	Bacteria|Proteobacteria|Gammaproteobacteria|Enterobacterales|Enterobacteriaceae|Klebsiella|Klebsiella oxytoca	0.6013126826
1352	species	2|1239|91061|186826|81852|1350|1352	Bacteria|Firmicutes|Bacilli|Lactobacillales|Enterococcaceae|Enterococcus|Enterococcus faecium	0.4022091488
1773	species	2|201174|1760|85007|1762|1763|1773	Bacteria|Actinobacteria|Actinobacteria|Corynebacteriales|Mycobacteriaceae|Mycobacterium|Mycobacterium tuberculosis	0.3031576420
1148	species	2|||||1142|1148	Bacteria|||||Synechocystis|Synechocystis sp. PCC 6803	0.2021050946
63363	species	2|200783|187857|32069|64898|2713|63363	Bacteria|Aquificae|Aquificae|Aquificales|Aquificaceae|Aquifex|Aquifex aeolicus	0.1010525473
