"""Classify reads of metagenomes by the reference sequences they share sketches with (MetaCache)."""
