"""The pure rules of a crawl: scope, judgement of responses, dates, crawler traps, throttling."""
