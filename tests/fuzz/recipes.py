"""All recipes: importing this registers them."""

from . import (
    recipes_anomalies,
    recipes_averages,
    recipes_channels,
    recipes_costs,
    recipes_forests,
    recipes_medoids,
    recipes_metrics,
    recipes_models,
    recipes_monitor,
    recipes_motifs,
    recipes_neighbors,
    recipes_profiles,
    recipes_regression,
    recipes_shapelets,
    recipes_soft,
)

__all__ = [
    "recipes_anomalies",
    "recipes_averages",
    "recipes_channels",
    "recipes_costs",
    "recipes_forests",
    "recipes_medoids",
    "recipes_metrics",
    "recipes_models",
    "recipes_monitor",
    "recipes_motifs",
    "recipes_neighbors",
    "recipes_profiles",
    "recipes_regression",
    "recipes_shapelets",
    "recipes_soft",
]
