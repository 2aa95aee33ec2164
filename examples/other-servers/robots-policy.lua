-- SPDX-License-Identifier: Apache-2.0
--
-- http-request lua.robots_policy asks Caddy whether a request may pass. It stores the header fields
-- for the page in variables, which http-response set-header uses (see haproxy.cfg).

local caddy = "http://127.0.0.1:9180"
local open_if_down = true -- false: if Caddy does not answer, clients get 503

local fields = {
	["robots-tag"] = "txn.robots_tag",
	["x-robots-tag"] = "txn.robots_x_tag",
	["content-usage"] = "txn.robots_usage",
	["link"] = "txn.robots_link",
	["tdm-reservation"] = "txn.robots_tdm",
	["tdm-policy"] = "txn.robots_tdm_policy",
}

-- ask sends a request to Caddy. If Caddy does not answer, which takes three seconds with HAProxy
-- 2.6, ask does not send any request in the next five seconds.
local down_since = -5

local function ask(method, path, headers)
	if core.now().sec < down_since + 5 then
		return {status = 0}
	end
	local ok, answer = pcall(function()
		local client = core.httpclient()
		return client[method](client, {url = caddy .. path, headers = headers, timeout = 2000})
	end)
	-- If HAProxy cannot reach Caddy, it makes a response itself.
	if not ok or answer.status == 0 or answer.status >= 500 and not (answer.headers and answer.headers["server"]) then
		down_since = core.now().sec
		return {status = 0}
	end
	return answer
end

local function block(txn, answer)
	local reply = txn:reply{status = answer.status, body = answer.body}
	for name, values in pairs(answer.headers or {}) do
		if name ~= "content-length" and name ~= "connection" and name ~= "transfer-encoding" then
			for _, value in pairs(values) do
				reply:add_header(name, value)
			end
		end
	end
	txn:done(reply)
end

core.register_action("robots_policy", {"http-req"}, function(txn)
	local headers, sent = {}, txn.http:req_get_headers()
	for _, name in ipairs({"user-agent", "signature", "signature-input", "signature-agent"}) do
		for _, value in pairs(sent[name] or {}) do
			headers[name] = headers[name] or {}
			table.insert(headers[name], value)
		end
	end
	headers["host"] = {"robots-policy"}
	headers["x-forwarded-uri"] = {txn.f:url()}
	headers["x-forwarded-method"] = {txn.f:method()}
	headers["x-forwarded-host"] = {txn.f:req_fhdr("host")}
	headers["x-forwarded-for"] = {txn.f:src()}
	headers["x-forwarded-proto"] = {txn.f:ssl_fc() == 1 and "https" or "http"}
	local answer = ask("get", "/decide", headers)
	if answer.status == 200 then
		for field, variable in pairs(fields) do
			if answer.headers[field] then
				txn:set_var(variable, table.concat(answer.headers[field], ", ", 0))
			end
		end
	elseif answer.status > 0 and answer.status < 500 or not open_if_down then
		block(txn, answer.status > 0 and answer or {status = 503})
	end
end)

-- http-request use-service lua.robots_policy_document sends robots.txt and other documents
-- from Caddy. While Caddy does not answer, it sends the last document that Caddy sent.
local last, remembered, most = {}, 0, 100 -- at most 100 documents, even if clients make up hosts

core.register_service("robots_policy_document", "http", function(applet)
	local headers, sent = {}, applet.headers
	for _, name in ipairs({"host", "user-agent", "if-none-match", "signature", "signature-input", "signature-agent", "x-forwarded-for", "x-forwarded-proto"}) do
		for _, value in pairs(sent[name] or {}) do
			headers[name] = headers[name] or {}
			table.insert(headers[name], value)
		end
	end
	local method = applet.method == "HEAD" and "head" or "get"
	local answer = ask(method, applet.path, headers)
	local key = (headers["host"] and headers["host"][1] or "") .. applet.path
	if answer.status == 0 or answer.status >= 500 then
		answer = last[key] or {status = 503, headers = {["retry-after"] = {[0] = "60"}}, body = ""}
	elseif answer.status == 200 and method == "get" and (last[key] or remembered < most) then
		if not last[key] then
			remembered = remembered + 1
		end
		last[key] = answer
	end
	applet:set_status(answer.status)
	for name, values in pairs(answer.headers or {}) do
		if name ~= "connection" and name ~= "transfer-encoding" and (name ~= "content-length" or method == "head") then
			for _, value in pairs(values) do
				applet:add_header(name, value)
			end
		end
	end
	local body = method == "get" and answer.status ~= 304 and (answer.body or "")
	if body then
		applet:add_header("content-length", tostring(#body))
	end
	applet:start_response()
	if body then
		applet:send(body)
	end
end)
