"""The graph of datasets: dependencies, order, errors."""
