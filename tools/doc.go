// SPDX-License-Identifier: Apache-2.0

// Package tools holds the commands that check this repository, as tools of a module of
// its own: whoever builds the plugin downloads none of them. Install them with
//
//	GOBIN=$PWD/.bin go -C tools install tool
package tools
