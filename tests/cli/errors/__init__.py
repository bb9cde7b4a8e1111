"""What is told of mistakes."""
