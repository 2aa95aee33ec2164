// SPDX-License-Identifier: Apache-2.0
//
// Reads the path of a request with the parser that X-Mode names: node upstream.js PORT CLOSED.json
const fs = require("fs"), http = require("http"), path = require("path"), url = require("url");

const closed = JSON.parse(fs.readFileSync(process.argv[3]));
const parsers = {
	"new URL": (target) => new URL(target, "http://www.example.com").pathname,
	"url.parse": (target) => url.parse(target).pathname,
	"url.parse of references": (target) => url.parse(target, true, true).pathname,
};
const isClosed = (p) => closed.some((c) => p === c || c.endsWith("/") && p.startsWith(c));

http.createServer((request, response) => {
	let text = "open";
	try {
		const p = decodeURIComponent(parsers[request.headers["x-mode"]](request.url));
		if (isClosed(p) || isClosed(path.posix.join("/", p))) {
			text = "CLOSED";
		}
	} catch { // not a URL
	}
	response.setHeader("Content-Type", "text/html");
	response.end("<!DOCTYPE html><html><head><title>x</title></head><body>" + text + "</body></html>\n");
}).listen(process.argv[2], "127.0.0.1");
