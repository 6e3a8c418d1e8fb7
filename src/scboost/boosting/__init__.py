"""The method: losses, history and its projection, learners, the loop, training."""
