"""Questions that editors ask about a project: what is wrong, what stands here, what may follow."""
