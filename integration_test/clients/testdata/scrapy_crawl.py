# SPDX-License-Identifier: Apache-2.0
"""Scrapy obeys robots.txt, as its project template has it, and follows links."""
import json
import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor


class Proxy:
    """Sends every request of a spider through its proxy, robots.txt included."""

    def process_request(self, request, spider):
        if spider.proxy:
            request.meta["proxy"] = spider.proxy


def spider(job):
    links = LinkExtractor(tags=("a", "link", "img"), attrs=("href", "src"), deny_extensions=[])

    class Spider(scrapy.Spider):
        name = "example"
        start_urls = job["urls"]
        proxy = job["proxy"]
        custom_settings = {
            "USER_AGENT": job["agent"],
            "ROBOTSTXT_OBEY": True,
            "DOWNLOADER_MIDDLEWARES": {Proxy: 740},
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "RETRY_ENABLED": False,
            "DOWNLOAD_TIMEOUT": 20,
            "DEPTH_LIMIT": 10,
            "CLOSESPIDER_PAGECOUNT": 500,
            "CLOSESPIDER_TIMEOUT": 240,
            "CONCURRENT_ITEMS": 2,
            "REQUEST_FINGERPRINTER_IMPLEMENTATION": "2.7",
        }

        def parse(self, response):
            if not isinstance(response, scrapy.http.HtmlResponse):
                return []
            return [response.follow(link, self.parse) for link in links.extract_links(response)]

    return Spider


process = CrawlerProcess({"LOG_LEVEL": "ERROR"})
for job in json.load(sys.stdin):
    process.crawl(spider(job))
process.start()
