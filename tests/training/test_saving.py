import threading

import pytest

from mmcorl.errors import MmcorlError
from mmcorl.training.saving import Saver


def test_work_is_done_beside_the_caller_and_one_at_a_time():
    saver, gate, done = Saver(background=True), threading.Event(), []

    def first():
        gate.wait(10)
        done.append("first")

    saver.start(first)
    assert done == []
    saver.check()  # does not wait for it
    threading.Timer(0.1, gate.set).start()
    saver.start(lambda: done.append("second"))
    assert done[0] == "first"
    saver.wait()
    assert done == ["first", "second"]
    saver.close()


def test_without_background_the_work_is_done_when_start_returns():
    saver, done = Saver(background=False), []
    saver.start(lambda: done.append(threading.current_thread()))
    assert done == [threading.main_thread()]
    saver.close()


@pytest.mark.parametrize("call", [Saver.wait, lambda saver: saver.start(lambda: None)])
def test_an_error_reaches_the_next_call_once(call):
    saver = Saver(background=True)

    def fail():
        raise MmcorlError("no room")

    saver.start(fail)
    with pytest.raises(MmcorlError, match="no room"):
        call(saver)
    saver.check()
    saver.close()


def test_an_error_is_told_before_the_next_step():
    saver, failed = Saver(background=True), threading.Event()

    def fail():
        failed.set()
        raise MmcorlError("no room")

    saver.start(fail)
    failed.wait(10)
    with pytest.raises(MmcorlError, match="no room"):
        for _ in range(1000):
            saver.check()
            threading.Event().wait(0.01)


def test_closing_waits_and_takes_no_other_errors_place(caplog):
    saver, done = Saver(background=True), []

    def work():
        threading.Event().wait(0.1)
        done.append(True)
        raise MmcorlError("no room")

    saver.start(work)
    saver.close()
    assert done == [True]
    assert "was not written: no room" in caplog.text
