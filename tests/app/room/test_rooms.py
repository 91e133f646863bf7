"""Short links and rooms: what is counted once, who may do what, what is bounded, and what dies."""

import asyncio
import json
from pathlib import Path

import pytest

from sgmcmc_lab.app.room import race
from sgmcmc_lab.app.room.network import whose
from sgmcmc_lab.app.room.rooms import (
    ALPHABET,
    CODE,
    IDLE_SECONDS,
    MAX_ENTRY,
    MAX_LINK,
    MOST,
    MOST_ASKED,
    MOST_OF_ADDRESS,
    MOST_STUDENTS,
    NOTE_SECONDS,
    Rooms,
    Use,
    _derived,
    gives_way,
    new_code,
    new_mark,
)
from sgmcmc_lab.app.room.store import DAY, Memory
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

LINK = "?target=quartic()&lane=sgld()"


class Forgetful(Memory):
    """A planted fault: it counts a vote that is there already once more."""

    async def add(self, key, field, value, most):
        again = len(await self.read(key)) if key.startswith("votes:") else ""
        return await super().add(key, f"{field}{again}", value, most)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def made(kind=Memory):
    clock = Clock()
    return Rooms(kind(clock), clock), clock


def in_a_room(do, kind=Memory):
    """The result of ``do(rooms, code, secret)`` in a room that was just opened."""

    async def whole():
        rooms, clock = made(kind)
        code, secret = await rooms.open(LINK)
        rooms.clock = clock
        return await do(rooms, code, secret)

    return asyncio.run(whole())


async def refused(work, *parts):
    with pytest.raises(SpecError) as error:
        await work
    for part in parts:
        assert part in str(error.value)


async def class_of(rooms, code, n):
    students = [new_mark() for _ in range(n)]
    await asyncio.gather(*(rooms.join(code, one) for one in students))
    return students


async def three_hundred(rooms, code, secret):
    """Each answers three times at once, and comes in twice."""
    students = await class_of(rooms, code, 300)
    await rooms.ask(code, secret, "langevin", 2, 4)
    await asyncio.gather(
        *(rooms.join(code, one) for one in students),
        *(rooms.answer(code, one, 1, 1 + i % 4) for i, one in enumerate(students * 3)),
    )
    room_state = await rooms.state_of(code)
    return room_state.students, room_state.bars(room_state.votes)


def test_each_of_three_hundred_answers_is_counted_once():
    assert in_a_room(three_hundred) == (300, [75] * 4)


def test_the_teacher_reads_that_one_computer_can_vote_many_times():
    """Fails where her part of SECURITY.md leaves it out while marks that one computer makes are 300 students."""
    short, _ = (Path(__file__).parents[3] / "SECURITY.md").read_text(encoding="utf-8").split("## What people type")
    said = "every page counts as a student, so that one computer can fill a room and vote many times"
    assert (said in " ".join(short.split())) == (in_a_room(three_hundred)[0] == 300)


def test_a_double_count_is_seen():
    students, bars = in_a_room(three_hundred, Forgetful)
    assert students == 300
    assert bars != [75] * 4


def test_the_first_answer_counts():
    async def do(rooms, code, secret):
        (student,) = await class_of(rooms, code, 1)
        await rooms.ask(code, secret, "langevin", 2, 4)
        assert await rooms.answer(code, student, 1, 3)
        assert not await rooms.answer(code, student, 1, 2)
        return (await rooms.state_of(code)).bars((await rooms.state_of(code)).votes)

    assert in_a_room(do) == [0, 0, 1, 0]


def test_the_same_question_again_stands_beside_its_first_time():
    async def do(rooms, code, secret):
        a, b = await class_of(rooms, code, 2)
        await rooms.ask(code, secret, "langevin", 2, 2)
        await rooms.answer(code, a, 1, 1)
        await rooms.ask(code, secret, "langevin", 2, 2)
        await refused(rooms.answer(code, b, 1, 1), "question = 1")
        await rooms.answer(code, a, 2, 2)
        await rooms.answer(code, b, 2, 2)
        await rooms.ask(code, secret, "langevin", 2, 2)
        await rooms.answer(code, b, 3, 1)
        room_state = await rooms.state_of(code)
        assert (room_state.bars(room_state.before), room_state.bars(room_state.votes), room_state.ask.shown) == (
            [1, 0],
            [1, 0],
            False,
        )
        await rooms.reveal(code, secret)
        await refused(rooms.answer(code, a, 3, 1), "not open")
        assert (await rooms.state_of(code)).ask.shown
        await rooms.ask(code, secret, "langevin", 3, 3)
        room_state = await rooms.state_of(code)
        assert (room_state.before, room_state.votes, room_state.ask.first) == ({}, {}, 0)

    in_a_room(do)


def test_only_the_maker_leads_asks_reveals_races_and_closes():
    async def do(rooms, code, secret):
        for wrong in (new_mark(), "", "x" * 5_000, secret[:-1], (await rooms.open(LINK))[1]):
            for work in (
                rooms.lead(code, wrong, "?target=gamma()"),
                rooms.ask(code, wrong, "langevin", 1, 2),
                rooms.reveal(code, wrong),
                rooms.race(code, wrong, "quartic", "ks"),
                rooms.close(code, wrong),
            ):
                await refused(work, "only the page that opened it")
            assert not await rooms.is_maker(code, wrong)
        assert await rooms.is_maker(code, secret)
        room_state = await rooms.state_of(code)
        assert (room_state.link, room_state.ask, room_state.race) == (LINK, None, None)
        await rooms.close(code, secret)
        assert await rooms.state_of(code) is None
        await refused(rooms.join(code, new_mark()), "no such room")

    in_a_room(do)


class Trusting(Rooms):
    """The planted fault: whoever comes first to a server that was started again has the room."""

    async def open_again(self, code, secret, link, owner=""):
        await self._open(code, secret, link, owner)


@pytest.mark.parametrize("kind", [Rooms, Trusting])
def test_a_room_that_is_gone_is_opened_again_by_its_maker_alone(kind):
    """By a server that never heard of it. Fails where a student could take over the class after a start."""

    async def do():
        code, secret = await made()[0].open(LINK)
        after = kind(Memory(Clock()))
        for wrong in (new_mark(), "", "x" * 5_000, secret[:-1], secret + "x"):
            await refused(after.open_again(code, wrong, LINK), "only the page that opened it")
        assert await after.state_of(code) is None
        # The remains of a room that expired.
        await after._store.add(f"votes:{code}:1", new_mark(), "1", MOST_STUDENTS)
        await after._store.add(f"race:{code}:1", new_mark(), "{}", MOST_STUDENTS)
        await after.open_again(code, secret, LINK)
        assert await after.is_maker(code, secret)
        await after.ask(code, secret, "langevin", 2, 2)
        await after.race(code, secret, "quartic", "ks")
        room_state = await after.state_of(code)
        return room_state.link, room_state.students, room_state.votes, room_state.entries

    if kind is Rooms:
        assert asyncio.run(do()) == (LINK, 0, {}, {})
    else:
        with pytest.raises(pytest.fail.Exception):
            asyncio.run(do())


@for_each("code", ["", "*", "k7mq2x9", "../../app", "room:abc", "K7MQ2X9D", "k7mq2x9d\n", "i" * 8, "k" * 9_000])
def test_a_forged_code_leads_nowhere(code):
    async def do(rooms, real, secret):
        assert await rooms.address(code) == ""
        assert await rooms.state_of(code) is None
        await refused(rooms.join(code, new_mark()), "room = ")
        return await rooms.address(real)

    assert in_a_room(do).startswith(LINK)


@pytest.mark.parametrize("new", [new_code, lambda: _derived(new_mark())])
def test_codes_are_of_the_alphabet_and_differ(new):
    found = {new() for _ in range(2_000)}
    assert len(found) == 2_000
    assert all(CODE.fullmatch(one) for one in found)
    # Each letter stands at each place as often as chance has it: 2,000/31 times, ± 6 standard errors.
    for place in range(8):
        assert all(abs(sum(one[place] == letter for one in found) - 64.5) < 48 for letter in ALPHABET)


def test_links_and_rooms_die_after_a_day():
    async def do(rooms, code, secret):
        short = await rooms.share(LINK)
        await rooms.join(code, new_mark())
        rooms.clock.now = DAY - 1
        assert await rooms.address(short) == LINK
        assert await rooms.address(code) == f"{LINK}&room={code}"
        rooms.clock.now = DAY + 1
        assert await rooms.address(short) == await rooms.address(code) == ""
        await refused(rooms.join(code, new_mark()), "no such room")
        assert not rooms._store._alive()

    in_a_room(do)


@pytest.mark.slow
def test_everything_is_bounded():
    async def do(rooms, code, secret):
        for link in ("target=quartic()", "https://elsewhere.example", "?" + "x" * MAX_LINK):
            await refused(rooms.share(link), "allowed are links of this page")
        students = await class_of(rooms, code, MOST_STUDENTS)
        await refused(rooms.join(code, new_mark()), "it is full")
        await rooms.join(code, students[0])
        await refused(rooms.join(code, "a b"), "student = ")
        await rooms.ask(code, secret, "langevin", 1, 2)
        for option in (0, 3, -1, 10**9):
            await refused(rooms.answer(code, students[0], 1, option), "answer = ")
        await refused(rooms.answer(code, new_mark(), 1, 1), "it is full")
        await rooms.race(code, secret, "quartic", "ks")
        await refused(
            rooms.enter(code, students[0], 1, {"link": "x" * MAX_ENTRY, "ks": 0.1, "tau": 1}), "at most 4,000"
        )
        for number in range(2, MOST_ASKED + 1):
            await rooms.ask(code, secret, "langevin", number, 2)
        await refused(rooms.ask(code, secret, "langevin", 1, 2), "open another")
        kinds = [key.partition(":")[0] for key in rooms._store._alive()]
        assert kinds.count("votes") <= 2

    in_a_room(do)


@for_each(
    "text",
    [
        "{",
        "null",
        "[]",
        '"x"',
        "[" * 100_000,
        '{"number": 1}',
        '{"number": "1", "lesson": "a", "step": 1, "options": 2}',
        '{"number": 1, "lesson": "a", "step": 1, "options": 2, "later": 3}',
        '{"number": 1, "target": 2, "by": "ks"}',
    ],
)
def test_what_another_version_has_written_of_a_room_is_as_if_absent(text):
    """Fails where the store of several processes holds what this one cannot read, and nobody sees the room."""

    async def do(rooms, code, secret):
        (student,) = await class_of(rooms, code, 1)
        await rooms.ask(code, secret, "langevin", 1, 2)
        await rooms.race(code, secret, "quartic", "ks")
        await rooms._store.add(f"votes:{code}:1", student, text, 10)
        await rooms._store.add(f"race:{code}:1", student, text, 10)
        room_state = await rooms.state_of(code)
        assert (room_state.ask.number, room_state.votes, room_state.race.number, room_state.entries) == (1, {}, 1, {})
        await rooms.enter(code, student, 1, {"link": LINK, "title": "SGLD", "ks": 0.1, "tau": 1.0})
        assert (await rooms.state_of(code)).entries[student]["ks"] == 0.1
        await rooms._store.write(f"room:{code}", {"ask": text, "race": text})
        room_state = await rooms.state_of(code)
        assert (room_state.link, room_state.students, room_state.ask, room_state.race) == (LINK, 1, None, None)
        await rooms.ask(code, secret, "langevin", 1, 2)
        await rooms.race(code, secret, "quartic", "ks")
        room_state = await rooms.state_of(code)
        assert (room_state.ask.number, room_state.race.number) == (1, 1)
        await rooms.close(code, secret)

    in_a_room(do)


def test_a_race_keeps_the_best_of_each():
    async def do(rooms, code, secret):
        a, b = await class_of(rooms, code, 2)
        await rooms.race(code, secret, "quartic", "ks")
        for who, ks, tau in ((a, 0.3, 5.0), (a, 0.1, None), (a, 0.2, 1.0), (b, 0.15, 2.0)):
            await rooms.enter(code, who, 1, {"link": LINK, "title": "SGLD", "ks": ks, "tau": tau})
        ranking = [(who, entry["ks"]) for who, entry in (await rooms.state_of(code)).ranking()]
        assert ranking == [(a, 0.1), (b, 0.15)]
        await rooms.race(code, secret, "quartic", "tau")
        assert [who for who, _ in (await rooms.state_of(code)).ranking()] == [b, a], "what is not known comes last"
        await rooms.race(code, secret, "gamma", "ks")
        await refused(rooms.enter(code, a, 1, {"link": LINK, "ks": 0.0, "tau": 0.0}), "it is over")
        return (await rooms.state_of(code)).entries

    assert in_a_room(do) == {}


def test_bars_give_way_to_a_race_and_a_later_question_stands_beside_it():
    """Fails where a phone would show the bars of before in place of the race's table, or no bars in a race."""

    async def do(rooms, code, secret):
        seen = []

        async def note():
            asks = (await rooms.state_of(code)).asks
            seen.append(asks and asks.number)

        await rooms.lead(code, secret, "?lesson=langevin&step=2")
        await rooms.ask(code, secret, "langevin", 2, 2)
        await rooms.reveal(code, secret)
        await note()
        await rooms.race(code, secret, "quartic", "ks")
        await note()
        await rooms.ask(code, secret, "langevin", 2, 2)
        await rooms.put_away(code, secret)
        await note()
        await rooms.reveal(code, secret)
        await rooms.race(code, secret, "quartic", "tau")
        await note()
        await rooms.put_away(code, secret)
        await note()
        await rooms.reveal(code, secret)
        await rooms.lead(code, secret, "?lesson=langevin&step=1")
        await note()
        return seen

    assert in_a_room(do) == [1, None, 2, 2, None, None]


def test_the_table_of_a_race_stays_until_the_teacher_goes_on():
    """Planted faults: it is gone with the race; or it stays beside the next target."""

    async def do(rooms, code, secret):
        (student,) = await class_of(rooms, code, 1)
        entry = {"link": LINK, "title": "SGLD", "ks": 0.1, "tau": 1.0}
        seen = []

        async def note():
            found = await rooms.state_of(code)
            seen.append((found.race and found.race.over, len(found.entries)))

        for goes_on in (
            lambda: rooms.lead(code, secret, "?target=gamma()&lane=sgld()"),
            lambda: rooms.ask(code, secret, "langevin", 2, 2),
            lambda: rooms.put_away(code, secret),
            lambda: rooms.race(code, secret, "quartic()", "ks"),
        ):
            await rooms.lead(code, secret, LINK)
            await rooms.race(code, secret, "quartic()", "ks")
            await rooms.put_away(code, secret)
            await rooms.enter(code, student, (await rooms.state_of(code)).race.number, entry)
            await rooms.race(code, secret, "", "ks")
            await refused(rooms.enter(code, student, (await rooms.state_of(code)).race.number, entry), "it is over")
            # A step size of the same target is not the next one.
            await rooms.lead(code, secret, LINK.replace("sgld()", "sgld(step_size:0.1)"))
            await note()
            await goes_on()
            await note()
        return seen

    assert in_a_room(do) == [*[(True, 1), (None, 0)] * 3, (True, 1), (False, 0)]


def racing(lane, target="quartic", **more):
    data = {"target": "quartic", "lanes": [lane], **more}
    return race.raced(Experiment.from_dict(data), target)


def test_a_race_measures_itself_and_equally():
    """Chains, seed and start of the student do not count; a good step size beats a small one; two runs are equal."""
    params = {"sampler": {"key": "sgld", "params": {"step_size": 0.02}}}
    good = racing(params, n_chains=3, seed=7, start=[1.0, 1.0])
    assert good == racing(params)
    found = race.measure(good)
    assert found == race.measure(racing(params))
    assert json.loads(json.dumps(found)) == found
    slow = race.measure(racing({"sampler": {"key": "sgld", "params": {"step_size": 1e-5}}}))
    assert found["ks"] < slow["ks"] / 3
    assert found["tau"] > 1
    assert slow["tau"] is None
    # The link replays the measured run.
    assert Experiment.from_query(found["link"], good)[0] == good


@pytest.mark.parametrize(
    ("lane", "target", "sentence"),
    [
        ({"sampler": "exact"}, "quartic", "exact draws are their reference"),
        ({"sampler": "sgld"}, "gamma", "allowed is the target of the race"),
    ],
)
def test_what_may_not_race(lane, target, sentence):
    with pytest.raises(SpecError, match=sentence):
        racing(lane, target)


def test_a_chain_that_leaves_is_said():
    with pytest.raises(SpecError, match="race = 'SGLD'"):
        race.measure(racing({"sampler": {"key": "sgld", "params": {"step_size": 1.0}}}))


def of(owner, n, used, start=0):
    """So many rooms of an address, by their codes."""
    return {f"{owner}{k}": Use(owner, 0.0, used) for k in range(start, start + n)}


FULL, OWN = MOST["room"], MOST_OF_ADDRESS["room"]
NOW = 2 * IDLE_SECONDS
"""A room that was last used at 0 is idle then, and one of NOW is not."""


@for_each(
    ("kept", "gone"),
    [
        ({}, None),
        (of("a", OWN - 1, NOW), None),
        # All of an address: its own gives way, the one that was not used for longest, and nobody else's.
        (of("a", OWN - 1, NOW) | of("a", 1, 1.0, OWN) | of("b", 1, 0.0), f"a{OWN}"),
        (of("a", OWN - 2, NOW) | of("a", 1, 1.0, OWN) | of("a", 1, 2.0, OWN + 1), f"a{OWN}"),
        (of("a", OWN, NOW) | of("b", 5, 0.0), "your network has 25 already"),
        # All of the server: one of who has most gives way.
        (of("b", OWN, NOW) | of("c", FULL - OWN - 1, 0.0) | of("d", 1, 0.0), "c0"),
        (of("b", OWN, NOW) | of("c", FULL - OWN - 1, NOW) | of("d", 1, 0.0), "d0"),
        (of("b", OWN, NOW) | of("c", FULL - OWN, NOW), "there are 100 already"),
    ],
    ids=["none", "few", "own", "the oldest", "own in use", "of who has most", "what is idle", "all in use"],
)
def test_what_is_not_used_gives_way(kept, gone):
    """Fails where one address takes all rooms for a day, or a room that a class is in gives way."""
    if gone is not None and "already" in gone:
        with pytest.raises(SpecError, match=gone):
            gives_way("room", "a", kept, NOW)
    else:
        assert gives_way("room", "a", kept, NOW) == gone


def test_a_school_behind_one_address_has_its_rooms():
    """25 classes of 400 at a time, of whom each that somebody is in stays."""

    async def do(rooms, clock):
        mine = [await rooms.open(LINK, "10.0.0.1") for _ in range(OWN)]
        await refused(rooms.open(LINK, "10.0.0.1"), "your network has 25 already")
        other, _ = await rooms.open(LINK, "10.0.0.2")
        # A class is in the second; nobody is in the others.
        for clock.now in range(0, int(IDLE_SECONDS) + 20, int(NOTE_SECONDS / 2)):
            assert await rooms.state_of(mine[1][0])
        clock.now = IDLE_SECONDS + 20
        await rooms.join(mine[0][0], new_mark())
        await rooms.ask(*mine[0], "langevin", 1, 2)
        await rooms.answer(mine[0][0], (await class_of(rooms, mine[0][0], 1))[0], 1, 1)
        assert await rooms.open(LINK, "10.0.0.1")
        there = [bool(await rooms._store.read(f"room:{code}")) for code, _ in (*mine, (other, ""))]
        kinds = {key.partition(":")[0] for key in rooms._store._alive() if mine[0][0] in key}
        # Its maker opens it again, in place of another one that is idle.
        await rooms.open_again(*mine[0], LINK, "10.0.0.1")
        return there, kinds, await rooms.is_maker(*mine[0])

    there, kinds, mine = asyncio.run(do(*made()))
    assert there == [False, *[True] * OWN]
    assert kinds == set(), "what was asked in it is left"
    assert mine


@pytest.mark.slow
def test_short_links_that_nobody_opens_give_way():
    async def do(rooms, clock):
        codes = [await rooms.share(LINK, "a") for _ in range(MOST_OF_ADDRESS["link"])]
        await refused(rooms.share(LINK, "a"), "your network has 250 already")
        clock.now = IDLE_SECONDS / 2
        assert await rooms.address(codes[0]) == LINK
        clock.now = IDLE_SECONDS + 1
        new = await rooms.share(LINK, "a")
        return [await rooms.address(code) for code in (codes[0], codes[1], new)]

    assert asyncio.run(do(*made())) == [LINK, "", LINK]


@for_each(
    ("address", "whose_it_is"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("::ffff:10.0.0.5", "10.0.0.5"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("unix", ""),
    ],
)
def test_a_network_of_ipv6_is_one_owner(address, whose_it_is):
    """Fails where one computer is as many owners as it has addresses."""
    assert whose(address) == whose_it_is
