"""An agent at the table as a process of its own: `table.py URL AGENT [SILENT_STEP]`, of the agents a and b.

Prints `step N` after each exchange, and how it ends. It does nothing from SILENT_STEP on, but lives. `table.py host`
hosts a store and prints its address. `table.py pair URL AGENT STEPS SECONDS` exchanges so often, a ballot that names its
agent and step; a hosts the store, and who is silent for so long is lost.
"""

import signal
import sys
import time

from mmcorl.cohort.ballots import Ballot
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.store import open_store
from mmcorl.errors import PeerLost

SECRET = b"of this cohort and nobody else's"


def host():
    _, address = open_store("tcp://127.0.0.1:0", is_host=True)
    print(address, flush=True)
    time.sleep(600)


def seat(store, agent, dead_after):
    return Exchange(store, ["a", "b"], agent, run="r", attempt="1", dead_after=dead_after, secret=SECRET)


def main(url, agent, silent_step=None):
    store, _ = open_store(url, is_host=False)
    with seat(store, agent, 3.0) as exchange:
        exchange.join("problems")
        for step in range(1, 4):
            if str(step) == silent_step:
                time.sleep(600)
            exchange.gather(step, ["p"], [Ballot(1, ())])
            print("step", step, flush=True)
    print("left", flush=True)


def pair(url, agent, steps, dead_after):
    store, _ = open_store(url, is_host=agent == "a")
    with seat(store, agent, float(dead_after)) as exchange:
        exchange.join("problems")
        for step in range(1, int(steps) + 1):
            messages = exchange.gather(step, ["p"], [Ballot(step, (), f"{agent}{step}")])
            print("step", step, *(message.ballots[0].texts for message in messages.values()), flush=True)
            time.sleep(0.05)
        time.sleep(1.0 if agent == "a" else 0.0)  # the store goes with its host
    print("left", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    try:
        match sys.argv[1:]:
            case ["host"]:
                host()
            case ["pair", *rest]:
                pair(*rest)
            case rest:
                main(*rest)
    except PeerLost as lost:
        print("lost:", lost, flush=True)
        sys.exit(3)
