"""What a reply says about a link to another site: total, and "broken" only if it is certain."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model import external
from crawler.model.external import Answer, DueLink, external_of
from crawler.model.note import EXTERNAL
from crawler.model.protocol import REDIRECTS
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.parse.url import Url
from crawler.rules.external import HOST_IS_DEAD, REFUSING, LinkRanks, answer_of, asks_for_less, needs_get
from crawler.rules.redirects import Redirects

URL = Url("https://a.example/")


def response(status: int, **headers: str) -> Response:
    return Response(status, Headers((name.replace("_", "-"), value) for name, value in headers.items()))


def judged(reply: Reply, *, sets_cookie: bool = False) -> Answer:
    redirects = Redirects(URL)
    redirects.follow(reply)
    return answer_of(reply, redirects, sets_cookie=sets_cookie)


replies = st.one_of(
    st.builds(
        response,
        st.integers(100, 999),
        location=st.sampled_from(["", "/", "//b.example/", "mailto:x@y", "https://[", "javascript:1"]),
        retry_after=st.sampled_from(["", "5", "never"]),
    ),
    st.builds(Broken, st.sampled_from(list(Cause)), transient=st.booleans()),
)


@given(replies, st.booleans())
def test_every_reply_has_an_answer_and_errors_alone_are_broken(reply: Reply, sets_cookie: bool) -> None:
    redirects = Redirects(URL)
    if redirects.follow(reply) is not None:
        return  # it goes on
    answer = answer_of(reply, redirects, sets_cookie=sets_cookie)
    if isinstance(reply, Response):
        is_error = (400 <= reply.status < 600 and reply.status not in REFUSING) or reply.status in REDIRECTS
        assert (answer.kind == external.BROKEN) <= is_error
        assert (answer is Answer.OK) == (200 <= reply.status < 300)
    else:
        is_unknown = reply.cause in {Cause.ADDRESS, Cause.WALL}
        assert answer.kind == (external.UNKNOWN if is_unknown else external.BROKEN)
    assert external.says(answer.value) == answer.says


@given(replies)
def test_broken_by_head_is_confirmed_by_get_where_it_may_differ(reply: Reply) -> None:
    redirects = Redirects(URL)
    if redirects.follow(reply) is None and not redirects.stopped:
        answer = answer_of(reply, redirects, sets_cookie=False)
        is_final = isinstance(reply, Broken) and reply.cause in HOST_IS_DEAD | {Cause.ADDRESS}
        assert (answer.kind == external.BROKEN) <= (needs_get(reply) or is_final)
    assert not (needs_get(reply) and asks_for_less(reply))


@pytest.mark.parametrize("status", [403, 405, 501])
def test_hosts_that_refuse_head_are_asked_by_get(status: int) -> None:
    assert needs_get(response(status))


@pytest.mark.parametrize("reply", [response(200), response(301), response(429), response(999), response(503, retry_after="9"), Broken(Cause.DNS), Broken(Cause.TLS), Broken(Cause.ADDRESS)])  # fmt: skip
def test_good_or_final_reply_is_not_asked_for_again(reply: Reply) -> None:
    assert not needs_get(reply)


@pytest.mark.parametrize(
    ("reply", "sets_cookie", "answer"),
    [
        (response(302, location="/"), False, Answer.REDIRECT_LOOP),
        (response(302, location="/"), True, Answer.COOKIES),
        (response(302), False, Answer.REDIRECT),
        (response(302, location="intent://x#Intent;end"), False, Answer.SCHEME),
        (response(302, location="http://["), False, Answer.REDIRECT),
        (response(503), False, Answer.SERVER_ERROR),
        (response(503, retry_after="120"), False, Answer.REFUSED),
        (response(451), False, Answer.REFUSED),
        (response(300), False, Answer.STATUS),
        (Broken(Cause.DNS, transient=True), False, Answer.DNS),
    ],
)
def test_answers(reply: Reply, sets_cookie: bool, answer: Answer) -> None:
    assert judged(reply, sets_cookie=sets_cookie) is answer


def test_codes_of_a_newer_version_are_shown_as_they_are() -> None:
    assert external.says("broken:moon") == "broken:moon"
    assert external.kind_of("broken:moon") == external.BROKEN
    assert external_of([None] * 6) is None


@pytest.mark.parametrize("values", [[], [1], ["1", 1.0, True, 0, ""], {}, [1, 1.0, 1, 0, ""]])
def test_a_stored_check_of_another_form_is_refused(values: object) -> None:
    with pytest.raises(ValueError, match="Expected"):
        EXTERNAL.read(json.dumps(values))


def test_a_domain_with_many_hosts_leaves_other_sites_their_share() -> None:
    posted = [Url(f"https://h{number}.stranger.com/{link}") for number in range(100) for link in range(100)]
    others = [Url(f"https://site{number}.org/{link}") for number in range(5) for link in range(20)]
    places = LinkRanks()
    ranked = sorted((places.of(DueLink(number, url)), number) for number, url in enumerate(posted + others))
    first = [number for _, number in ranked[:400]]
    assert sum(number >= len(posted) for number in first) == len(others)
