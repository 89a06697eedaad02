"""The pure rules of a crawl: what belongs, what a reply means, which dates are true, what is a crawler trap."""
