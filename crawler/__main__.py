"""`python -m crawler`, and the command `sitemap-crawler`: signals are noted before anything large is imported."""

from crawler.signals import noted


def main() -> None:
    """Run the program and leave with its exit code."""
    noted.begin()
    from crawler.cli import main as run  # noqa: PLC0415 - takes long, and a signal may come meanwhile

    run()


if __name__ == "__main__":
    main()
