"""The texts of the console: values as markup and words, without a page."""
