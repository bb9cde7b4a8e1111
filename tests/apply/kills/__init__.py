"""Whatever is killed, cut off or done at the same time, the next apply goes on from there."""
