"""Link prediction and unsupervised training, with fastpart's own sampler."""
