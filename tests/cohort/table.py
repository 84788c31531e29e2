"""An agent at the table as a process of its own: `table.py URL AGENT [SILENT_STEP]`, of the agents a and b.

Prints `step N` after each exchange, and how it ends. It does nothing from SILENT_STEP on, but lives. `table.py host`
hosts a store and prints its address.
"""

import signal
import sys
import time

from mmcorl.cohort.ballots import Ballot
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.store import open_store
from mmcorl.errors import PeerLost


def host():
    _, address = open_store("tcp://127.0.0.1:0", is_host=True)
    print(address, flush=True)
    time.sleep(600)


def main(url, agent, silent_step=None):
    store, _ = open_store(url, is_host=False)
    with Exchange(store, ["a", "b"], agent, run="r", attempt="1", dead_after=3.0) as exchange:
        exchange.join("problems")
        for step in range(1, 4):
            if str(step) == silent_step:
                time.sleep(600)
            exchange.gather(step, ["p"], [Ballot(1, ())])
            print("step", step, flush=True)
    print("left", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    try:
        host() if sys.argv[1] == "host" else main(*sys.argv[1:])
    except PeerLost as lost:
        print("lost:", lost, flush=True)
        sys.exit(3)
