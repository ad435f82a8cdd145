"""Studies: grids of training runs on one machine or a cluster, their statistics, figures and the claims they decide."""
