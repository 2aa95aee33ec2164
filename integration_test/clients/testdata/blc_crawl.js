// SPDX-License-Identifier: Apache-2.0
//
// broken-link-checker as it comes, with links to style sheets among what it
// checks: it obeys robots.txt, X-Robots-Tag and robots meta tags.
'use strict';

require('./names.js');
const {SiteChecker} = require('broken-link-checker');

const crawl = (job, url) => new Promise(resolve => {
	const checker = new SiteChecker({
		userAgent: job.agent,
		filterLevel: 3,
		excludeExternalLinks: true,
		maxSocketsPerHost: 4,
	}, {end: resolve});
	checker.enqueue(url);
});

(async () => {
	for (const job of JSON.parse(require('fs').readFileSync(0, 'utf8'))) {
		for (const url of job.urls) {
			await crawl(job, url);
		}
	}
})();
