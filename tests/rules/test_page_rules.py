"""Which rule applies to a URL, and what it adds to an entry."""

from hypothesis import given
from hypothesis import strategies as st

from crawler.model.facts import Entry, Extras
from crawler.parse.url import Url
from crawler.rules.page_rules import PageRules
from crawler.settings.tables import PageRule

ANY = PageRule("*", "daily", 0.5)


def at(path: str) -> Url:
    return Url(f"https://a.example{path}")


def test_the_first_rule_that_matches_counts_as_a_whole() -> None:
    first, second = PageRule("/blog/*", priority=0.8), PageRule("re:^/blog", "weekly", list=False)
    rules = PageRules((first, second, ANY))
    assert rules.of(at("/blog/1?page=2")) == first
    assert rules.of(at("/blogs")) == second
    assert rules.of(at("/")) == ANY
    assert PageRules((first,)).of(at("/")) is None


def test_a_glob_is_for_the_whole_of_path_and_query() -> None:
    rules = PageRules((PageRule("/a"),))
    assert rules.of(at("/a"))
    assert not any(map(rules.of, (at("/a?b"), at("/a/"), at("/b/a"), Url("https://a/x"))))


def test_entries_get_what_their_rule_says() -> None:
    rules = PageRules((PageRule("/no", list=False), PageRule("/plain", follow=False), ANY))
    assert rules.apply([Entry(at("/no")), Entry(at("/plain")), Entry(at("/z"))]) == [
        Entry(at("/plain")),
        Entry(at("/z"), None, Extras("daily", 0.5)),
    ]


@given(
    st.lists(st.sampled_from([PageRule("/a*", list=False), PageRule("re:b", priority=0.1), ANY])),
    st.sampled_from(["/a", "/b", "/ab", "/"]),
)
def test_rules_after_the_first_match_change_nothing(rules: list[PageRule], path: str) -> None:
    found = PageRules(rules).of(at(path))
    if found:
        assert PageRules(rules[: rules.index(found) + 1]).of(at(path)) == found
    else:
        assert PageRules(rules).apply([Entry(at(path))]) == [Entry(at(path))]
