"""Scrapy, for comparison. usage: scrapy_site.py URL OUT [stock|tuned]; OUT gets a URL a line.

stock: CrawlSpider and LinkExtractor, only the concurrency raised. tuned: one XPath, a set of one's own before a request
is made, and every middleware off that is not needed.
"""

import sys
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

START, OUT, MODE = sys.argv[1], sys.argv[2], (sys.argv + ["stock"])[3]
HOST = urlsplit(START).hostname
found = open(OUT, "w", encoding="utf-8")  # closed by the end of the process


class Stock(CrawlSpider):
    name, start_urls, allowed_domains = "stock", [START], [HOST]
    rules = [Rule(LinkExtractor(), callback="page", follow=True)]

    def parse_start_url(self, response, **_):
        self.page(response)

    def page(self, response):
        if isinstance(response, scrapy.http.HtmlResponse):
            found.write(response.url + "\n")


class Tuned(scrapy.Spider):
    name, start_urls, seen = "tuned", [START], {START}

    def parse(self, response) -> Iterator[scrapy.Request]:
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        found.write(response.url + "\n")
        for href in {href.partition("#")[0].strip() for href in response.xpath("//a/@href").getall()}:
            url = urljoin(response.url, href)
            if href and url not in self.seen and url.startswith(START):
                self.seen.add(url)
                yield scrapy.Request(url, dont_filter=True)


settings = {
    "CONCURRENT_REQUESTS": 64, "CONCURRENT_REQUESTS_PER_DOMAIN": 64, "LOG_ENABLED": False, "ROBOTSTXT_OBEY": False,
    "AUTOTHROTTLE_ENABLED": False, "COOKIES_ENABLED": False, "METAREFRESH_ENABLED": False, "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
}  # fmt: skip
if MODE == "tuned":
    down, spider = "scrapy.downloadermiddlewares.", "scrapy.spidermiddlewares."
    settings |= {
        "HTTPPROXY_ENABLED": False, "DEPTH_STATS_VERBOSE": False,
        "DOWNLOADER_MIDDLEWARES": {
            down + "offsite.OffsiteMiddleware": None, down + "httpauth.HttpAuthMiddleware": None,
            down + "stats.DownloaderStats": None, down + "downloadtimeout.DownloadTimeoutMiddleware": None,
        },
        "SPIDER_MIDDLEWARES": {
            spider + "referer.RefererMiddleware": None, spider + "urllength.UrlLengthMiddleware": None,
            spider + "depth.DepthMiddleware": None,
        },
    }  # fmt: skip
process = CrawlerProcess(settings)
process.crawl(Tuned if MODE == "tuned" else Stock)
process.start()
