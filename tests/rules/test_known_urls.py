from crawler.parse.url import Url
from crawler.rules.candidates import GENERATION_CHARACTERS, KnownUrls


def test_cache_is_bounded_and_evicts_oldest() -> None:
    known = KnownUrls(size=10)
    for number in range(25):
        known.add(Url(f"http://x/{number}"), number + 1)
        assert known.number(Url("http://x/0")), "a URL that is looked up stays"
    assert not known.number(Url("http://x/1"))
    assert known.number(Url("http://x/24")) == 25
    assert len(known._young) + len(known._old) <= 20


def test_cache_is_bounded_in_bytes() -> None:
    known = KnownUrls()
    urls = [Url(f"https://site.example/{'x' * 8_000}/{number}") for number in range(10_000)]
    for number, url in enumerate(urls, 1):
        known.add(url, number)
    kept = [number for number in known.numbers(urls[-400:]) if number]
    assert len(kept) == 400, "the links of one page always fit"
    assert sum(len(url) for url in (*known._young, *known._old)) < 2 * GENERATION_CHARACTERS + 100_000
