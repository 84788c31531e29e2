from datetime import timedelta

import pytest
from torch.distributed import HashStore

from mmcorl.cohort.sealed import Forged, Sealed, read_secret
from mmcorl.cohort.store import open_store
from mmcorl.errors import MmcorlError

SECRET = b"0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("kind", ["memory", "file", "tcp"])
def test_a_text_is_read_by_those_who_know_the_secret(kind, tmp_path):
    url = {"memory": f"memory://{tmp_path}", "file": f"file://{tmp_path}/store", "tcp": "tcp://127.0.0.1:0"}
    store, _ = open_store(url[kind], is_host=True)
    sealed = Sealed(store, SECRET, "run/1")
    sealed.set("key", "text\n\x00")
    reader = Sealed(store, SECRET, "run/1").clone()
    reader.wait(["key"], timedelta(seconds=5))
    assert reader.get("key") == b"text\n\x00"
    assert store.get("run/1/key").endswith(b"text\n\x00")  # signed, not hidden
    reader.delete_key("key")
    assert not sealed.check(["key"])


@pytest.mark.parametrize("secret", [b"", b"another", SECRET[:-1] + b"g"])
def test_another_secret_is_refused(secret):
    store = HashStore()
    Sealed(store, secret, "run").set("key", "text")
    with pytest.raises(Forged, match=r"run/key in the cohort's store .* same cohort\.secret_file"):
        Sealed(store, SECRET, "run").get("key")


@pytest.mark.parametrize("value", ["", "text", "f" * 64 + "text", "é" * 64])
def test_what_bears_no_seal_is_refused(value):
    store = HashStore()
    store.set("run/key", value)
    with pytest.raises(Forged, match="run/key"):
        Sealed(store, SECRET, "run").get("key")


def test_every_changed_character_is_noticed():
    store = HashStore()
    Sealed(store, SECRET, "run").set("key", "text")
    whole = store.get("run/key").decode()
    for place in range(len(whole)):
        store.set("run/key", whole[:place] + "~" + whole[place + 1 :])
        with pytest.raises(Forged):
            Sealed(store, SECRET, "run").get("key")


def test_a_value_is_refused_under_another_key():
    store = HashStore()
    Sealed(store, SECRET, "run").set("3/b/a", "text")
    moved = store.get("run/3/b/a").decode()
    for key in ("run/4/b/a", "run/3/a/b", "run2/3/b/a", "run/3/b/at"):
        store.set(key, moved)
        prefix, _, rest = key.partition("/")
        with pytest.raises(Forged):
            Sealed(store, SECRET, prefix).get(rest)
    store.set("run/3/b/", moved[:64] + "a" + moved[64:])  # as if the end of the key were the text
    with pytest.raises(Forged):
        Sealed(store, SECRET, "run").get("3/b/")


def test_a_secret_is_read_from_a_file_of_its_owner_alone(tmp_path):
    path = tmp_path / "secret"
    with pytest.raises(MmcorlError, match=r"cannot be read \(No such file.*openssl rand"):
        read_secret(path)
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o640)
    with pytest.raises(MmcorlError, match=r"open to other users \(mode 640\); run `chmod 600"):
        read_secret(path)
    path.chmod(0o600)
    assert read_secret(path) == SECRET
    path.write_bytes(SECRET[:20])
    with pytest.raises(MmcorlError, match="holds 20 characters, and 32 is the least"):
        read_secret(path)
