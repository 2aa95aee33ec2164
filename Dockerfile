# SPDX-License-Identifier: Apache-2.0
#
# Caddy with robots_policy and its console, built from this checkout:
#
#	docker build -t caddy-robots-policy .
#	docker run -p 80:80 -p 443:443 -v "$PWD/etc:/etc/caddy" -v caddy-data:/data caddy-robots-policy
#
# /etc/caddy holds the Caddyfile and the policy. Mount the directory, not the files.
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /caddy ./cmd/caddy

FROM caddy:2.11-alpine
COPY --from=build /caddy /usr/bin/caddy
# Ports below 1024 without being root; directories that the user may write.
RUN setcap cap_net_bind_service=+ep /usr/bin/caddy \
	&& adduser -D -u 65532 -h /data caddy \
	&& mkdir -p /data/caddy /config/caddy \
	&& chown -R caddy:caddy /data /config
USER caddy
VOLUME ["/data", "/config"]
EXPOSE 80 443 443/udp
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s \
	CMD wget -q -O /dev/null http://localhost:2019/robots_policy/ || exit 1
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
