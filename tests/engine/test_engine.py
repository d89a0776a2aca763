"""The one door: joined, stored, claimed, sent, and only then answered."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.support import Echo, Remote, number_of, question
from evalwright.core.errors import (
    ConfigurationError,
    EmptyReply,
    Failure,
    RateLimited,
    Rejected,
    RequestFailed,
    StoreError,
)
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.requests import Embed, Request
from evalwright.core.responses import RateLimits, Response, Usage
from evalwright.engine.budget import Budget, Limits
from evalwright.engine.engine import Engine, RoleClient
from evalwright.engine.opening import open_store
from evalwright.engine.store_rows import MINE, Batch
from evalwright.models.model_interface import Model, Pacing
from support.stores import Statements, make_read_only

pytestmark = pytest.mark.usefixtures("each_store")


def with_engine(
    home: Path, work: Callable[[Engine], Coroutine[Any, Any, Any]], **options: Any
) -> Any:
    """Run with an engine on the store in that folder."""

    async def main() -> Any:
        with open_store(home) as store:
            async with Engine(store, **options) as engine:
                return await asyncio.wait_for(work(engine), 60)

    return asyncio.run(main())


async def slow_echo(request: Request) -> Response:
    """An answer after a moment."""
    await asyncio.sleep(0.02)
    return Response(
        text=number_of(request),
        usage=Usage(10, 2),
        cost=0.5,
        rate_limits=RateLimits(limit_requests=9),
    )


@pytest.mark.parametrize(
    "make", [Echo, lambda: Remote(slow_echo)], ids=["local", "remote"]
)
def test_a_request_is_asked_once_and_answered_from_the_store_ever_after(
    tmp_path: Path, make: Callable[[], Any]
) -> None:
    model = make()

    async def work(engine: Engine) -> Any:
        door = engine.door({"target": model})
        answers = await asyncio.gather(
            *(door("target", question(n % 50)) for n in range(200))
        )
        assert [answer.text for answer in answers] == [str(n % 50) for n in range(200)]
        return door.counts

    first = with_engine(tmp_path, work)
    assert (first.requested, first.asked, first.joined, first.stored, first.failed) == (
        200,
        50,
        150,
        0,
        0,
    )
    again = with_engine(tmp_path, work)
    assert (again.requested, again.asked, again.joined, again.stored) == (
        200,
        0,
        0,
        200,
    )
    assert sorted(model.asked, key=int) == [str(n) for n in range(50)]
    assert again.usage == Usage() and again.cost is None


async def miss_often(door: RoleClient) -> None:
    """Ask for so much that is not in the store that the next request claims first."""
    await asyncio.gather(*(door("t", question(f"missed {n}")) for n in range(80)))


def test_after_many_misses_what_is_stored_is_found_by_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Remote(slow_echo)
    numbers = [n % 10 for n in range(40)]

    async def store_ten(engine: Engine) -> None:
        door = engine.door({"t": model})
        await asyncio.gather(*(door("t", question(n)) for n in range(10)))

    async def ask_again(engine: Engine) -> None:
        door = engine.door({"t": model})
        await miss_often(door)
        looks = counted_looks(engine, monkeypatch)
        await door("t", question("missed too"))
        assert looks == []
        counts = door.counts
        assert (counts.requested, counts.asked, counts.stored) == (81, 81, 0)
        answers = await asyncio.gather(*(door("t", question(n)) for n in numbers))
        assert [answer.text for answer in answers] == [str(n) for n in numbers]
        # Each of the ten, and the thirty that waited for them.
        assert (counts.requested, counts.asked, counts.stored) == (121, 81, 40)
        assert counts.joined == counts.failed == 0
        # A request that is in the store is found at once from now on, and claims nothing.
        looks.clear()
        await door("t", question(3))
        assert len(looks) == 1 and counts.stored == 41

    with_engine(tmp_path, store_ten)
    with_engine(tmp_path, ask_again)
    assert len(model.asked) == 91


def counted_looks(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> list[Sequence[bytes]]:
    """Keep the keys of each look into the store from now on."""
    store = engine._store
    look = store.get_many
    looks: list[Sequence[bytes]] = []

    async def get_many(keys: Sequence[bytes]) -> list[Response | None]:
        looks.append(keys)
        return await look(keys)

    monkeypatch.setattr(store, "get_many", get_many)
    return looks


def test_after_many_misses_a_filtered_answer_is_still_sent_again_once(
    tmp_path: Path,
) -> None:
    async def filtered(request: Request) -> Response:
        return Response(text="", finish_reason=CONTENT_FILTER, usage=Usage(1, 1))

    model = Remote(filtered)

    async def ask_one(engine: Engine) -> Response:
        return await engine.door({"t": model})("t", question(1))

    async def ask_again(engine: Engine) -> None:
        door = engine.door({"t": model})
        await miss_often(door)
        model.reply = slow_echo
        for _ in range(2):
            assert (await door("t", question(1))).text == "1"
        assert (door.counts.asked, door.counts.stored) == (81, 1)

    assert with_engine(tmp_path, ask_one).text == ""
    with_engine(tmp_path, ask_again, resend_empty=True)
    assert with_engine(tmp_path, ask_one).text == "1"


def test_after_many_misses_a_spent_budget_still_answers_what_is_stored(
    tmp_path: Path,
) -> None:
    model = Remote(slow_echo)

    async def ask(engine: Engine) -> None:
        door = engine.door({"t": model})
        await miss_often(door)
        budget = Budget(Limits(requests=1))

        async def paid(number: int | str) -> tuple[str, bool]:
            reservation = budget.reservation()
            try:
                answer = await door.paid_by(reservation)("t", question(number))
            finally:
                reservation.close()
            return answer.text, reservation.refused

        assert await paid(1) == ("1", False)
        with pytest.raises(RequestFailed, match="budget"):
            await paid(2)
        assert await paid("missed 7") == ("missed 7", False)
        assert await paid(1) == ("1", False)
        assert "2" not in model.asked

    with_engine(tmp_path, ask)


def test_after_many_misses_a_damaged_answer_is_asked_again(
    tmp_path: Path, behind: Statements
) -> None:
    model = Remote(slow_echo)

    async def ask_one(engine: Engine) -> None:
        await engine.door({"t": model})("t", question(1))

    async def ask_again(engine: Engine) -> None:
        door = engine.door({"t": model})
        await miss_often(door)
        await door("t", question(1))
        assert (door.counts.asked, door.counts.damaged) == (81, 1)

    with_engine(tmp_path, ask_one)
    behind(tmp_path, "UPDATE responses SET checksum=checksum+1")
    with_engine(tmp_path, ask_again)
    assert model.asked.count("1") == 2


def test_each_door_counts_its_own(tmp_path: Path) -> None:
    async def work(engine: Engine) -> None:
        model = Remote(slow_echo)
        one = engine.door({"target": model})
        other = engine.door({"judge": model})
        await asyncio.gather(
            one("target", question(1)),
            other("judge", question(1)),
            other("judge", question(2)),
        )
        assert (one.counts.asked, one.counts.joined) == (1, 0)
        assert (other.counts.asked, other.counts.joined) == (1, 1)
        assert len(model.asked) == 2

    with_engine(tmp_path, work)


def test_models_with_one_fingerprint_share_answers_and_others_do_not(
    tmp_path: Path,
) -> None:
    async def work(engine: Engine) -> None:
        one = Echo("one")
        same = Echo("one")
        other = Echo("other")
        door = engine.door({"one": one, "same": same, "other": other})
        for role in ("one", "same", "other"):
            await door(role, question(1))
        assert (one.asked, same.asked, other.asked) == (["1"], [], ["1"])

    with_engine(tmp_path, work)


@pytest.mark.parametrize("heavy", [True, False])
def test_an_answer_is_on_disk_before_anybody_sees_it(
    tmp_path: Path, heavy: bool
) -> None:
    async def main() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as witness:
            async with Engine(store) as engine:
                door = engine.door({"target": Echo(heavy=heavy)})
                for number in range(20):
                    await door("target", question(number))
                    assert len(witness) == number + 1

    asyncio.run(main())


def test_failures_are_never_stored_and_asked_again_next_time(tmp_path: Path) -> None:
    broken = True

    async def reply(request: Request) -> Response:
        await asyncio.sleep(0.01)
        if broken and int(number_of(request)) % 2:
            raise Rejected("Odd", status=400)
        return Response(text=number_of(request))

    model = Remote(reply)

    async def work(engine: Engine) -> Any:
        door = engine.door({"target": model})
        # each twice, so that failures are joined too
        requests = [question(n // 2) for n in range(40)]
        results = await asyncio.gather(
            *(door("target", request) for request in requests), return_exceptions=True
        )
        return door.counts, results

    counts, results = with_engine(tmp_path, work)
    failed = [result for result in results if isinstance(result, RequestFailed)]
    assert len(failed) == 20 and len({id(failure) for failure in failed}) == 20
    assert (counts.asked, counts.joined, counts.failed) == (10, 10, 20)
    assert counts.failures == {"request rejected": 20}
    broken = False
    counts, results = with_engine(tmp_path, work)
    assert (counts.asked, counts.failed) == (10, 0)
    assert counts.stored + counts.joined == 30
    assert len(model.asked) == 30


def test_a_damaged_answer_is_asked_again_and_replaced(
    tmp_path: Path, behind: Statements
) -> None:
    model = Echo()

    async def work(engine: Engine) -> None:
        await asyncio.gather(
            *(engine.door({"t": model})("t", question(n)) for n in range(3))
        )

    with_engine(tmp_path, work)
    behind(
        tmp_path,
        "UPDATE responses SET checksum=checksum+1 WHERE key=(SELECT key FROM responses ORDER BY key LIMIT 1)",
    )
    for _ in range(2):
        with_engine(tmp_path, work)
    assert len(model.asked) == 4


def test_who_joined_takes_over_when_the_asker_is_cancelled(tmp_path: Path) -> None:
    model = Remote(slow_echo)

    async def work(engine: Engine) -> None:
        door = engine.door({"target": model})
        asks = [asyncio.ensure_future(door("target", question(1))) for _ in range(5)]
        await asyncio.sleep(0.01)
        asks[0].cancel()
        asks[2].cancel()
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert [isinstance(result, Response) for result in results] == [
            False,
            True,
            False,
            True,
            True,
        ]
        counts = door.counts
        assert (
            counts.requested
            == counts.asked + counts.joined + counts.stored + counts.failed
            == 5
        )
        assert counts.failures == {"cancelled": 2}

    with_engine(tmp_path, work)


def test_what_no_model_can_answer_is_not_asked(tmp_path: Path) -> None:
    class Strange(Model):
        name = "strange"
        abilities = frozenset()
        fingerprint = "x"

    async def work(engine: Engine) -> None:
        model = Echo()
        door = engine.door({"target": model, "judge": Echo("j")})
        with pytest.raises(RequestFailed, match="'embed'; it can do: generate"):
            await door("target", Embed("x"))
        with pytest.raises(ConfigurationError, match=r"'juge'\. Did you mean 'judge'"):
            await door("juge", question(1))
        with pytest.raises(ConfigurationError, match=r"'strange' .* must derive from"):
            engine.door({"target": Strange()})
        assert model.asked == []

    with_engine(tmp_path, work)


def test_a_full_store_ends_every_ask_and_the_asking(tmp_path: Path) -> None:
    model = Remote(slow_echo, Pacing(start_concurrency=4, max_concurrency=4))

    async def work(engine: Engine) -> None:
        door = engine.door({"target": model})
        await door("target", question("first"))
        make_read_only(engine._store)
        asks = (door("target", question(n)) for n in range(100))
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert all(isinstance(result, StoreError) for result in results)
        assert len(model.asked) < 20
        assert door.counts.failures == {"store": 100}

    with_engine(tmp_path, work)


def test_stop_lets_finish_what_is_sent_and_stores_it(tmp_path: Path) -> None:
    stopping = asyncio.Event()

    async def reply(request: Request) -> Response:
        await stopping.wait()
        return Response(text=number_of(request))

    model = Remote(reply, Pacing(start_concurrency=10, max_concurrency=10))

    async def work(engine: Engine) -> None:
        door = engine.door({"target": model})
        asks = [asyncio.ensure_future(door("target", question(n))) for n in range(50)]
        while len(model.asked) < 10:
            await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_soon(stopping.set)
        await engine.stop(grace=600)  # which is not waited for to its end
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert sum(isinstance(result, Response) for result in results) == 10
        assert door.counts.failures == {"cancelled": 40}
        with pytest.raises(RequestFailed, match="run again to go on"):
            await door("target", question("late"))
        assert (await door("target", question(0))).text == "0", (
            "what is stored is still answered"
        )

    with_engine(tmp_path, work)
    with open_store(tmp_path) as store:
        assert len(store) == 10
    assert len(model.asked) == 10


def test_stop_ends_within_its_grace_what_does_not_finish(tmp_path: Path) -> None:
    release = threading.Event()

    class Stuck(Echo):
        def answer_batch(
            self, requests: Sequence[Request]
        ) -> Iterator[tuple[int, Response | Failure]]:
            yield 0, Response(text="one came")
            release.wait(100)

    async def hang(request: Request) -> Response:
        await asyncio.sleep(1000)
        return Response()

    async def limited(request: Request) -> Response:
        await asyncio.sleep(0.01)
        raise RateLimited("Wait", retry_after=100.0)

    async def work(engine: Engine) -> None:
        hanging = Remote(hang, name="h")
        waiting = Remote(limited, name="l")
        roles = {"local": Stuck(), "hang": hanging, "limited": waiting}
        door = engine.door(roles)
        asks = [
            asyncio.ensure_future(door(role, question(n)))
            for role in roles
            for n in range(100)
        ]
        while not (hanging.asked and waiting.asked and any(one.done() for one in asks)):
            await asyncio.sleep(0.01)
        await engine.stop(grace=0.2)
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert sum(isinstance(result, Response) for result in results) == 1
        assert door.counts.failures == {"cancelled": 299}
        release.set()

    with_engine(tmp_path, work)


def test_a_request_after_the_closing_fails_and_waits_for_nothing(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        with open_store(tmp_path) as store:
            async with Engine(store) as engine:
                door = engine.door({"target": Echo()})
                await door("target", question(1))
            with pytest.raises(
                RequestFailed, match="was stopped before this was answered"
            ):
                await asyncio.wait_for(door("target", question(2)), 60)
            assert (await door("target", question(1))).text == "1", (
                "what is stored is still answered"
            )

    asyncio.run(main())


def test_closing_closes_remote_models_once(tmp_path: Path) -> None:
    model = Remote(slow_echo)

    async def work(engine: Engine) -> None:
        await engine.door({"a": model, "b": model})("a", question(1))
        await engine.close()

    with_engine(tmp_path, work)
    assert model.closed == 1


def test_what_another_store_is_asking_is_waited_for_and_said(tmp_path: Path) -> None:
    events: list[str] = []

    async def main() -> None:
        with open_store(tmp_path) as here, open_store(tmp_path) as there:
            async with (
                Engine(here) as one,
                Engine(there, on_event=events.append) as other,
            ):
                asking = Remote(slow_echo)
                waiting = Remote(slow_echo)
                first = one.door({"t": asking})
                second = other.door({"t": waiting})
                asks = [
                    asyncio.ensure_future(first("t", question(n))) for n in range(20)
                ]
                while len(asking.asked) < 20:
                    await asyncio.sleep(0.001)
                answers = await asyncio.gather(
                    *(second("t", question(n)) for n in range(20))
                )
                assert [answer.text for answer in answers] == [
                    str(n) for n in range(20)
                ]
                await asyncio.gather(*asks)
                assert len(asking.asked) == 20 and waiting.asked == []
                assert second.counts.joined + second.counts.stored == 20

    asyncio.run(main())
    assert len(events) <= 1 and all("another run" in event for event in events)


def test_stop_ends_the_waiting_for_others(tmp_path: Path) -> None:
    async def hang(request: Request) -> Response:
        await asyncio.sleep(1000)
        return Response()

    async def main() -> None:
        with open_store(tmp_path) as here, open_store(tmp_path) as there:
            async with Engine(here) as one, Engine(there) as other:
                holder = Remote(hang)
                unasked = Remote(hang)
                first = one.door({"t": holder})
                second = other.door({"t": unasked})
                asking = asyncio.ensure_future(first("t", question(1)))
                while not holder.asked:
                    await asyncio.sleep(0.01)
                waiting = asyncio.ensure_future(second("t", question(1)))
                await asyncio.sleep(0.1)
                await other.stop()
                with pytest.raises(RequestFailed, match="stopped"):
                    await asyncio.wait_for(waiting, 60)
                assert not unasked.asked
                await one.stop(grace=0.1)
                with pytest.raises(RequestFailed, match="stopped"):
                    await asking

    asyncio.run(main())


def test_nothing_is_kept_of_what_was_answered(tmp_path: Path) -> None:
    """Counted in objects; benchmarks/overhead.py measures the memory of
    whole runs.
    """
    kinds = (Request, Response, asyncio.Future, threading.Event)

    async def work(engine: Engine) -> None:
        model = Echo()
        door = engine.door({"target": model})

        async def kept_after(count: int) -> int:
            await asyncio.gather(*(door("target", question(n)) for n in range(count)))
            model.batches.clear()
            await asyncio.sleep(0)
            gc.collect()
            return sum(issubclass(type(thing), kinds) for thing in gc.get_objects())

        few = await kept_after(200)
        assert await kept_after(2000) < few + 50

    with_engine(tmp_path, work)


def test_a_claim_that_is_granted_to_a_cancelled_request_is_given_up(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        with open_store(tmp_path) as one, open_store(tmp_path) as other:
            async with Engine(one) as engine:
                door = engine.door({"target": Echo()})
                outbox = one.outbox()
                deliver = outbox._deliver

                def delivering(batch: Batch, error: StoreError | None) -> None:
                    keys.extend(batch.claims)
                    deliver(batch, error)
                    asking.cancel()  # the claim is granted, and the request has not gone on yet

                outbox._deliver = delivering  # type: ignore[method-assign]
                keys: list[bytes] = []
                asking = asyncio.ensure_future(door("target", question(1)))
                with pytest.raises(asyncio.CancelledError):
                    await asking
                assert (
                    await asyncio.wait_for(other.outbox().claim_after(keys[0]), 60)
                    == MINE
                )

    asyncio.run(main())


def test_an_empty_reply_to_another_process_is_not_paid_for_again(
    tmp_path: Path,
) -> None:
    sent = asyncio.Event()

    async def reply(request: Request) -> Response:
        sent.set()
        await asyncio.sleep(0.05)
        raise EmptyReply("Nothing was written")

    models = [Remote(reply), Remote(reply)]

    async def main() -> None:
        with open_store(tmp_path) as one, open_store(tmp_path) as other:
            async with Engine(one) as first, Engine(other) as second:
                asks = [
                    asyncio.ensure_future(
                        first.door({"t": models[0]})("t", question(1))
                    )
                ]
                await sent.wait()
                asks.append(
                    asyncio.ensure_future(
                        second.door({"t": models[1]})("t", question(1))
                    )
                )
                for failed in await asyncio.gather(*asks, return_exceptions=True):
                    assert (
                        isinstance(failed, RequestFailed)
                        and failed.failure.kind == EmptyReply.kind
                    )

    asyncio.run(main())
    assert models[0].asked and not models[1].asked
