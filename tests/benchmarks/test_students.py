"""The bench of a room: a student who does not come is counted, and so is a message that does not."""

import asyncio
import json
import math
import time

import pytest

from sgmcmc_lab.samplers.parameters import SpecError
from tests.benchmarks import students
from tests.benchmarks.students import Hall, Reach, Student
from tests.helpers.cases import for_each


class Socket:
    """A connection whose messages come when they are said."""

    def __init__(self):
        self.coming, self.sent = asyncio.Queue(), []

    async def read_message(self):
        return await self.coming.get()

    def write_message(self, text):
        self.sent.append(json.loads(text))


def student(mute=False):
    one = Student("", "", "")
    one._socket = Socket()
    if not mute:
        one._reading = asyncio.get_running_loop().create_task(one._read())
    return one


@pytest.mark.slow
@pytest.mark.parametrize("mute", [0, 1, 3])
def test_a_message_that_does_not_come_is_missing(mute, monkeypatch):
    """Fails where the 95th percentile is of those that came alone, and nobody says so; or where another message, of the
    same kind without the part that is waited for, ends the time. Planted fault: students who read nothing.
    """
    monkeypatch.setattr(students, "BETWEEN", 0.3)

    async def use():
        there = [student(mute=k < mute) for k in range(4)]

        async def act():
            for one in there:
                one._socket.coming.put_nowait(json.dumps({"type": "bar", "mine": 2}))
                one._socket.coming.put_nowait(json.dumps({"type": "page"}))
            await asyncio.sleep(0.1)
            for one in there:
                one._socket.coming.put_nowait(json.dumps({"type": "bar", "mine": 1}))

        hall = Hall.__new__(Hall)
        return await hall._reached(there, act(), "bar", '"mine": 1')

    found = asyncio.run(use())
    assert found.missing == mute
    assert 0.1 <= found.p95 < 0.3


def test_every_student_answers_and_the_time_begins_with_the_answer():
    async def use():
        there = [student() for _ in range(2)]
        hall = Hall.__new__(Hall)
        began = time.perf_counter()
        voting = asyncio.create_task(hall._vote(there))
        while not all(one._socket.sent for one in there):
            await asyncio.sleep(0)
        answered = time.perf_counter()
        await asyncio.sleep(0.05)
        waited = time.perf_counter() - answered
        for one in there:
            ((_, option),) = one._socket.sent
            one._socket.coming.put_nowait(json.dumps({"type": "bar", "mine": option}))
        found = await voting
        return [one._socket.sent for one in there], found, waited, time.perf_counter() - began

    sent, found, waited, whole = asyncio.run(use())
    assert sent == [[["answer", 1]], [["answer", 2]]]
    assert found.missing == 0 and waited <= found.p95 <= whole


def test_a_student_who_does_not_come_has_failed():
    async def use():
        began = time.perf_counter()
        return await Student("127.0.0.1:9", "x", "code").come(0.05), time.perf_counter() - began

    seconds, took = asyncio.run(use())
    assert math.isnan(seconds) and took >= 0.05
    assert Reach.of([], 3).missing == 3


@for_each("number", [0, -1, students.MOST + 1])
def test_a_number_of_students_out_of_bounds_is_refused(number):
    with pytest.raises(SpecError, match=f"--class = {number}.*from 1 to {students.MOST} students"):
        students.measure(number, lambda what: None)
