"""Plain files, standard library only."""
