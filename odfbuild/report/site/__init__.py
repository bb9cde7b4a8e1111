"""The data catalogue as a folder of pages."""
