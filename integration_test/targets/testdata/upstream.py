# SPDX-License-Identifier: Apache-2.0
#
# Reads the path of a request in the way that X-Mode names, for a WSGI server. CLOSED names a JSON file.
import json
import os
from urllib.parse import unquote, urlsplit

with open(os.environ["CLOSED"]) as f:
    closed = json.load(f)


def path_of(environ):
    mode = environ.get("HTTP_X_MODE")
    if mode == "PATH_INFO":
        return environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    if mode == "urlsplit":
        return unquote(urlsplit(environ["RAW_URI"]).path)
    return unquote(environ["RAW_URI"].split("?")[0])


def app(environ, start_response):
    text = "open"
    try:
        path = path_of(environ)
        if any(path == c or c.endswith("/") and path.startswith(c) for c in closed):
            text = "CLOSED"
    except ValueError:  # not a URL
        pass
    start_response("200 OK", [("Content-Type", "text/html")])
    if environ["REQUEST_METHOD"] == "HEAD":
        return []
    return [f"<!DOCTYPE html><html><head><title>x</title></head><body>{text}</body></html>\n".encode()]
