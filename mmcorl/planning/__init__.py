"""What a run will hold in memory, worked out before anything of it is loaded."""
