"""The report: what runs did, on one page that needs no network.

runs.py reads metrics, digests.py streams the completions, problems.py holds what needs the problems themselves;
series.py, outcomes.py, tables.py and words.py turn them into charts, tables and sentences; charts.py draws; reading.py
puts everything together, page.py shows it; serve.py does so while a run goes on.
"""
