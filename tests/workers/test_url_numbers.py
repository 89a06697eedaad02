"""Each URL is sent once, then by its number; both tables are cleared after the same message."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.visit import Links
from crawler.parse.url import Url
from crawler.workers import messages
from crawler.workers.messages import NumberedLinks, SentUrls

A, B, C = (Url(f"http://x.example/{name}") for name in "abc")
SIDES = st.lists(st.sampled_from([Url(f"http://x.example/{n}") for n in range(30)]), max_size=8, unique=True)


def test_known_url_is_sent_as_its_number() -> None:
    sent = SentUrls()
    assert sent.written(Links((A, B), (C,))) == NumberedLinks([A, B, C], [0, 1], [2])
    assert sent.written(Links((C, Url(f"{A}d")), (A,))) == NumberedLinks([Url(f"{A}d")], [2, 3], [0])


def through_json(links: NumberedLinks) -> NumberedLinks:
    return msgspec.json.decode(msgspec.json.encode(links), type=NumberedLinks)


@given(st.lists(st.tuples(SIDES, SIDES)))
def test_links_arrive_as_they_were_sent(pages: list[tuple[list[Url], list[Url]]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "MOST_NUMBERED", 10)
        sent, received = SentUrls(), messages.received_urls()
        for followed, avoided in pages:
            links = Links(tuple(followed), tuple(avoided))
            assert received.read(through_json(sent.written(links))) == links


def test_tables_are_bounded_in_bytes() -> None:
    sent, received = SentUrls(), messages.received_urls()
    for number in range(1_000):
        received.read(sent.written(Links((Url(f"http://x.example/{number}/{'x' * 8_000}"),))))
        assert len(sent._numbers) == len(received._urls) <= messages.MOST_NUMBERED_CHARACTERS // 8_000 + 1
