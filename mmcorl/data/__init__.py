"""Where problems come from: local files, prepared folders and the built-in scenes."""
