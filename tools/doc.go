// SPDX-License-Identifier: Apache-2.0

// Package tools lists the commands that check this repository. The commands are tools of a separate module, so a build
// of the plugin does not download them. Install them with
//
//	GOBIN=$PWD/.bin go -C tools install tool
package tools
