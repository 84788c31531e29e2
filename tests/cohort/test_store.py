import socket
import time
from threading import Thread

import pytest

from mmcorl.cohort.store import is_reached_from_elsewhere, open_store
from mmcorl.errors import MmcorlError


def test_port_zero_gives_an_address_that_others_can_open():
    served, address = open_store("tcp://127.0.0.1:0", is_host=True)
    assert address.startswith("tcp://127.0.0.1:") and not address.endswith(":0")
    served.set("key", "value")
    guest, same = open_store(address, is_host=False)
    assert same == address
    assert guest.get("key") == b"value"


def test_a_loopback_store_is_not_offered_to_other_networks():
    _, address = open_store("tcp://127.0.0.1:0", is_host=True)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", int(address.rpartition(":")[2])), timeout=5)


def test_an_address_that_is_not_this_machines_is_served_on_all_networks(caplog):
    served, address = open_store("tcp://192.0.2.1:0", is_host=True)  # reserved for documentation
    assert "is served on all networks: 192.0.2.1 is no address of this machine's" in caplog.text
    served.set("key", "value")
    guest, _ = open_store(f"tcp://127.0.0.1:{address.rpartition(':')[2]}", is_host=False)
    assert guest.get("key") == b"value"


@pytest.mark.parametrize(
    ("url", "reached"),
    [
        ("tcp://127.0.0.1:0", False),
        ("tcp://[::1]:29500", False),
        ("tcp://localhost:29500", False),
        ("tcp://host1:29500", True),
        ("tcp://0.0.0.0:29500", True),
        ("file:///shared/store", False),
        ("memory://name", False),
    ],
)
def test_which_stores_other_machines_reach(url, reached):
    assert is_reached_from_elsewhere(url) is reached


def test_a_guest_waits_for_a_host_that_comes_later():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        address = f"tcp://127.0.0.1:{reserved.getsockname()[1]}"
    kept = []
    host = Thread(target=lambda: (time.sleep(0.5), kept.append(open_store(address, is_host=True)[0])))
    host.start()
    guest, _ = open_store(address, is_host=False)
    host.join()
    kept[0].set("key", "value")
    assert guest.get("key") == b"value"


def test_files_and_memory_are_shared_by_address(tmp_path):
    for address in (f"file://{tmp_path}/store", f"memory://{tmp_path}"):
        open_store(address, is_host=True)[0].set("key", "value")
        assert open_store(address, is_host=False)[0].get("key") == b"value"


@pytest.mark.parametrize(
    ("url", "is_host", "message"),
    [
        ("tcp://no.such.host.invalid:29400", False, "no.such.host.invalid cannot be resolved"),
        ("tcp://no..host:29400", True, r"no\.\.host cannot be resolved"),
        ("tcp://[::1:29400", True, "Invalid IPv6 URL"),
        ("tcp://no.such.host.invalid:29400", True, "no.such.host.invalid cannot be resolved"),
        ("tcp://127.0.0.1", True, "write tcp://host:port"),
        ("tcp://127.0.0.1:port", True, "port"),
        ("tcp://127.0.0.1:70000", True, "Port out of range"),
        ("tcp://127.0.0.1:0", False, "names no port"),
        ("tcp://127.0.0.1:1", False, "was not reached within 0.3 s: Connection refused"),
        ("file:///no/such/folder/store", True, "No such file or directory"),
        ("file://folder/store", True, "write file:///path, with three slashes"),
        ("redis://127.0.0.1:6379", True, "none of tcp://host:port"),
    ],
)
def test_addresses_that_lead_nowhere(url, is_host, message):
    with pytest.raises(MmcorlError, match=message) as error:
        open_store(url, is_host, reach_within=0.3)
    assert f"cohort.store={url}" in str(error.value)


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(MmcorlError, match="Address already in use; choose another port, or port 0"):
            open_store(url, is_host=True)


def test_something_else_that_answers_at_the_address(monkeypatch):
    monkeypatch.setattr("mmcorl.cohort.store._ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(MmcorlError, match="what answers there is not a store"):
            open_store(url, is_host=False, reach_within=3600.0)


@pytest.mark.parametrize("content", [b"x", b"settings: of something else\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "store"
    path.write_bytes(content)
    with pytest.raises(MmcorlError, match="is a file of something else"):
        open_store(f"file://{path}", is_host=True)
    assert path.read_bytes() == content
