"""The forms of a report: text, Markdown, CSV, JSON and HTML, each made from the same object."""
