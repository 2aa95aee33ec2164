// SPDX-License-Identifier: Apache-2.0

// Package golangcilint holds golangci-lint as a tool, in a module of its own: its
// dependencies would otherwise decide the versions of the other tools'.
package golangcilint
