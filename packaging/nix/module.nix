# SPDX-License-Identifier: Apache-2.0
#
# A NixOS module: Caddy with robots_policy. Until the first release, name a commit after the @, in
# the form that Go uses for versions without a tag.
#
# withPlugins needs a hash of all sources. Build once with lib.fakeHash, and replace lib.fakeHash with
# the hash that the error shows. Do this again after each update.
{ lib, pkgs, ... }:
{
  services.caddy = {
    enable = true;
    package = pkgs.caddy.withPlugins {
      plugins = [
        "github.com/robotspolicy/caddy-robots-policy@v0.1.0"
      ];
      hash = lib.fakeHash;
    };
    virtualHosts."www.example.com".extraConfig = ''
      robots_policy /etc/caddy/site-policy.yaml
      reverse_proxy localhost:9000
    '';
  };
  environment.etc."caddy/site-policy.yaml".source = ./site-policy.yaml;
}
