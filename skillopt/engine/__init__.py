"""The loop: from a configuration and an environment to a trained skill and its scores."""
