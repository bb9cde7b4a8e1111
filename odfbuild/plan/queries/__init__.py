"""What is wrong with a query, as far as its text and the columns of its inputs tell."""
