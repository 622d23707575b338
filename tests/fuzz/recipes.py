"""All recipes: importing this registers them."""

from . import recipes_metrics, recipes_motifs

__all__ = ["recipes_metrics", "recipes_motifs"]
