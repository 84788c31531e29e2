import os
import signal
import threading

from mmcorl.graders.pool import Pool

SLOW = "((9!)!)!"


def test_workers_compare_start_late_and_close():
    pool = Pool(workers=2)
    assert pool.same(r"\sum_{k=1}^{3} k", "6", 20)
    assert not pool.same(r"\sum_{k=1}^{3} k", "7", 20)
    assert pool.timeouts == 0
    pool.close()
    assert pool.same(r"\int_0^1 2x dx", "1", 20)  # a closed pool starts afresh
    pool.close()


def test_a_timeout_is_not_the_same_and_the_next_question_is_answered():
    pool = Pool(workers=1)
    assert not pool.same(SLOW, "2", 1)
    assert pool.timeouts == 1
    assert pool.same(r"\int_0^1 2x dx", "1", 20)
    pool.close()


def test_a_killed_worker_is_replaced():
    pool = Pool(workers=1)
    assert pool.same(r"\sum_{k=1}^{3} k", "6", 20)
    worker = pool._slots.get()
    assert worker is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    pool._slots.put(worker)
    assert not pool.same(r"\sum_{k=1}^{3} k", "6", 20)
    assert pool.timeouts == 1
    assert pool.same(r"\sum_{k=1}^{3} k", "6", 20)
    pool.close()


def test_works_from_threads():
    pool = Pool(workers=2)
    verdicts: dict[int, bool | None] = {}

    def ask(n: int) -> None:
        verdicts[n] = pool.same(rf"\sum_{{k=1}}^{{{n}}} k", str(n * (n + 1) // 2), 20)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(2, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    assert verdicts == dict.fromkeys(range(2, 8), True)
