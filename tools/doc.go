// SPDX-License-Identifier: Apache-2.0

// Package tools lists the commands that check this repository. They belong to a separate module, so that a build of the
// plugin does not download them. Install them with
//
//	GOBIN=$PWD/.bin go -C tools install tool
package tools
