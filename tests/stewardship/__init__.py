"""Keys of subjects, statements about records that are gone, retention."""
