import pytest
from torch.distributed import HashStore

from mmcorl.cohort.parcels import collect, post
from mmcorl.cohort.sealed import Forged, Sealed

SECRET = b"s" * 32


def sealed(store):
    return Sealed(store, SECRET, "run")


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 20, 95])
def test_a_text_arrives_whole_and_leaves_nothing(length):
    store, text = HashStore(), "".join(chr(97 + i % 26) for i in range(length))
    post(sealed(store), "key", text, piece=10)
    assert collect(sealed(store), "key") == text.encode()
    assert store.list_keys() == []


def test_a_short_text_is_stored_as_it_is():
    store = sealed(HashStore())
    post(store, "key", '{"a": 1}')
    assert store.get("key") == b'{"a": 1}'


def test_what_was_not_posted_in_pieces_is_given_as_it_is():
    store = sealed(HashStore())
    for foreign in ("", "+2", "+two\n...", "\x00K\x01."):
        store.set("key", foreign)
        assert collect(store, "key") == foreign.encode()


def test_pieces_that_changed_places_are_refused():
    store = HashStore()
    post(sealed(store), "key", "a" * 10 + "b" * 10 + "c" * 10, piece=10)
    first, second = store.get("run/key+1"), store.get("run/key+2")
    store.set("run/key+1", second)
    store.set("run/key+2", first)
    with pytest.raises(Forged, match=r"run/key\+1 in the cohort's store"):
        collect(sealed(store), "key")
