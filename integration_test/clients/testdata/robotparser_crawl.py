# SPDX-License-Identifier: Apache-2.0
"""A small crawler that asks Python's urllib.robotparser before each request."""
import html.parser
import json
import sys
import urllib.error
import urllib.parse
import urllib.request
import urllib.robotparser


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag in ("a", "link", "img"):
            self.found += [v for k, v in attrs if k in ("href", "src") and v]


def crawl(job):
    proxies = {"http": job["proxy"]} if job["proxy"] else {}
    urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler(proxies)))
    start = urllib.parse.urlsplit(job["urls"][0])
    rules = urllib.robotparser.RobotFileParser(urllib.parse.urljoin(job["urls"][0], "/robots.txt"))
    rules.read()
    queue, seen = list(job["urls"]), set(job["urls"])
    for url in queue:
        if len(seen) > 500 or not rules.can_fetch(job["agent"], url):
            continue
        request = urllib.request.Request(url, headers={"User-Agent": job["agent"]})
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                if response.headers.get_content_type() != "text/html":
                    continue
                links = Links()
                links.feed(response.read().decode())
        except urllib.error.HTTPError:
            continue
        for link in links.found:
            to = urllib.parse.urldefrag(urllib.parse.urljoin(url, link)).url
            if urllib.parse.urlsplit(to).netloc == start.netloc and to not in seen:
                seen.add(to)
                queue.append(to)


for job in json.load(sys.stdin):
    crawl(job)
