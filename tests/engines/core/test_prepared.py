"""Threads that ask for the same thing at once: one builds it, and no lock is left behind."""

from __future__ import annotations

import sys
import threading
import weakref

import numpy as np
import pytest

from skts.engines.core.prepared import FORGOTTEN, PreparedStore


def test_a_thread_that_comes_too_late_leaves_no_gate(monkeypatch):
    """It looks before the thing is there, and gets its gate when the one who built it has gone."""
    store, owner, looked, built = PreparedStore(), np.zeros(3), threading.Event(), threading.Event()
    find = store._find

    def slow_to_go_on(owner, key):
        found = find(owner, key)
        if threading.current_thread() is late and not looked.is_set():
            looked.set()
            built.wait(60)
        return found

    monkeypatch.setattr(store, "_find", slow_to_go_on)
    answers = []
    late = threading.Thread(
        target=lambda: answers.append(store.get(owner, "key", lambda: ("second", 1)))
    )
    late.start()
    assert looked.wait(60)
    assert store.get(owner, "key", lambda: ("first", 1)) == "first"
    built.set()
    late.join(60)
    assert answers == ["first"]
    assert not store._gates


def test_threads_at_once_build_one_thing():
    store, owner, made = PreparedStore(), np.zeros(3), []
    start = threading.Barrier(8)
    answers = []

    def work():
        start.wait()
        for number in range(200):
            answers.append(store.get(owner, number, lambda number=number: (made.append(number), 1)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == list(range(200))
    assert len(answers) == 1600
    assert not store._gates


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_could_not_be_built_leaves_no_gate(error):
    """Neither while the error is looked at; whoever asks next builds it."""
    store, owner = PreparedStore(), np.zeros(3)

    def build():
        raise error("no")

    with pytest.raises(error) as raised:
        store.get(owner, "key", build)
    assert raised.value.__traceback__ is not None
    assert not store._gates
    assert store.get(owner, "key", lambda: ("there", 1)) == "there"


def test_what_dies_with_an_array_runs_no_code_of_python():
    """Where Python runs none, no Ctrl-C is lost, and nothing is left half done."""

    def interrupt(frame, event, argument):
        if frame.f_code.co_filename == store_file:
            raise KeyboardInterrupt

    store, owner, store_file = PreparedStore(), np.zeros(3), PreparedStore.get.__code__.co_filename
    last = owner
    for _ in range(4):  # each is held by what was made from the next
        value, owner = owner, np.zeros(3)
        store.get(owner, "key", lambda value=value: ((value, "made"), 1))
        store.get(owner, "other", lambda: ("there", 1))
    died = weakref.ref(last)
    del last, value
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        del owner
    finally:
        sys.settrace(before)
    assert died() is None and len(store) == 0 and store.recount() == 0
    assert not store._held and not store._order


def test_nothing_is_found_of_an_array_that_was_there_before():
    store, owner, other = PreparedStore(), np.zeros(3), np.zeros(3)
    assert store.get(owner, "key", lambda: ("old", 1)) == "old"
    # as if the next array lay where it lay
    store._held[id(other)] = store._held.pop(id(owner))
    assert not store.holds(other, "key")
    assert store.get(other, "key", lambda: ("new", 1)) == "new"
    del other
    assert len(store) == 0 and not store._held


def test_arrays_that_come_and_go_leave_nothing():
    """One at a time, as a service asks about each series by itself; and few of their keys."""
    store, kept = PreparedStore(), np.zeros(3)
    store.get(kept, "key", lambda: (None, 3))
    for _ in range(1000):
        store.get(np.zeros(3), "key", lambda: (None, 3))
    assert len(store) == len(store._held) == 1 and not store._gates
    assert len(store._order) <= FORGOTTEN + 2
    assert store.recount() == 3 and len(store._order) == 1


def test_room_is_made_where_more_is_counted_than_is_held():
    """As after an interrupt between an entry and its size: nothing is dropped that has room."""
    store, owners = PreparedStore(capacity=10), [np.zeros(3) for _ in range(6)]
    for owner in owners[:3]:
        store.get(owner, "key", lambda: (None, 3))
    assert store._at_most == store.size() == 9
    store._at_most += 100
    store.get(owners[3], "key", lambda: (None, 1))
    assert store._at_most == store.size() == 10 and len(store) == 4
    store.get(owners[4], "key", lambda: (None, 4))  # in place of the first two
    assert store._at_most == store.size() == 8 and len(store) == 3
    del owners[2], owner
    assert store.size() == 5 and store._at_most == 8  # until room is needed
    store.drop(owners[2], "key")
    assert store.recount() == store.size() == 4 and len(store) == 1
    store.get(owners[0], "key", lambda: (None, 50))  # alone, since it is asked for
    assert store._at_most == store.size() == 50
    store.clear()
    assert store._at_most == store.size() == 0
