// SPDX-License-Identifier: Apache-2.0
//
// simplecrawler as it comes: it obeys robots.txt and robots meta tags.
'use strict';

require('./names.js');
const Crawler = require('simplecrawler');

const crawl = (job, url) => new Promise(resolve => {
	const crawler = new Crawler(url);
	crawler.userAgent = job.agent;
	crawler.interval = 5;
	crawler.maxConcurrency = 4;
	crawler.timeout = 20000;
	crawler.maxDepth = 10;
	crawler.on('complete', resolve);
	crawler.start();
});

(async () => {
	for (const job of JSON.parse(require('fs').readFileSync(0, 'utf8'))) {
		for (const url of job.urls) {
			await crawl(job, url); // of several at once it checks only the first
		}
	}
})();
