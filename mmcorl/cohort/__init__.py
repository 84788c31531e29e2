"""What agents tell each other about a problem, who listens to whom, and how the word travels."""
