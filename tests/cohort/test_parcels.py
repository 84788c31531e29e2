import pytest
from torch.distributed import HashStore

from mmcorl.cohort.parcels import collect, post


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 20, 95])
def test_a_text_arrives_whole_and_leaves_nothing(length):
    store, text = HashStore(), "".join(chr(97 + i % 26) for i in range(length))
    post(store, "key", text, piece=10)
    assert collect(store, "key") == text.encode()
    assert store.list_keys() == []


def test_a_short_text_is_stored_as_it_is():
    store = HashStore()
    post(store, "key", '{"a": 1}')
    assert store.get("key") == b'{"a": 1}'


def test_what_was_not_posted_in_pieces_is_given_as_it_is():
    store = HashStore()
    for foreign in (b"", b"+2", b"+two\n...", b"\x80\x04K\x01."):
        store.set("key", foreign)
        assert collect(store, "key") == foreign
