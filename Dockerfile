# A small image for a nightly crawl. Build:  docker build -t sitemap-crawler .
# With a browser, for --render (docs/use/recipes.md):  docker build --target render -t sitemap-crawler:render .
# Run, with a read-only root:
#   docker run --rm --read-only --tmpfs /tmp -v state:/state -v "$PWD/sitemaps:/output" sitemap-crawler crawl https://example.com/

# Packages are those of the locks in .ci, by hash (scripts/locks.py); dependabot proposes the next digest.
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
WORKDIR /src
COPY .ci/build.txt .ci/image.txt .ci/image-render.txt .ci/
RUN python -m pip install --no-cache-dir --require-hashes --requirement .ci/build.txt \
    && python -m venv --without-pip /opt/crawler \
    && python -m pip --python /opt/crawler/bin/python install --no-cache-dir --require-hashes --requirement .ci/image.txt
COPY pyproject.toml README.md LICENSE ./
COPY scripts/readme.py scripts/
COPY docs/use/sitemap-crawler.1 docs/use/
COPY crawler crawler
RUN python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && python -m pip --python /opt/crawler/bin/python install --no-cache-dir --no-deps --no-index /wheel/*.whl

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS base
LABEL org.opencontainers.image.title="sitemap-crawler" \
      org.opencontainers.image.description="Crawls a site and publishes a sitemap that search engines can trust" \
      org.opencontainers.image.licenses="MIT"
# The volumes belong to the user we run as, so that an empty one mounted there can be written. No installer stays.
RUN install -d -o 10001 -g 10001 /state /output \
    && python -m pip uninstall --yes pip
ENV PATH=/opt/crawler/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SITEMAP_CRAWLER_STATE=/state/crawl.db \
    SITEMAP_CRAWLER_OUTPUT=/output
USER 10001:10001
WORKDIR /state
VOLUME ["/state", "/output"]
# Healthy: nothing is left to do, or the crawl has made progress within the last two minutes.
HEALTHCHECK --interval=1m --timeout=20s --start-period=1m --retries=3 \
    CMD ["sitemap-crawler", "status", "--alive", "120"]
# The first TERM ends what is in flight and keeps the rest, within ten seconds: what `docker stop` waits for.
STOPSIGNAL SIGTERM
# The program is process 1 and handles its signals itself. It also ends the processes that it starts (--processes, the
# sandboxed parser, a browser with all its children), so no init is needed.
ENTRYPOINT ["sitemap-crawler"]
CMD ["--help"]

# The same with a browser. Its sandbox needs user namespaces: docs/run/containers.md.
FROM build AS build-render
RUN python -m pip --python /opt/crawler/bin/python install --no-cache-dir --require-hashes --requirement .ci/image-render.txt

FROM base AS render
COPY --from=build-render /opt/crawler /opt/crawler
USER 0:0
# Not pinned: a browser must be the newest of its distribution. The driver of playwright needs libatomic.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends chromium-headless-shell libatomic1 \
    && rm -rf /var/lib/apt/lists/*
USER 10001:10001
ENV SITEMAP_CRAWLER_RENDER=auto

# What `docker build .` makes: without a browser.
FROM base AS plain
COPY --from=build /opt/crawler /opt/crawler
