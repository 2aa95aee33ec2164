// SPDX-License-Identifier: Apache-2.0

// Package golangcilint lists golangci-lint as a tool. It is a separate module, because otherwise golangci-lint's
// dependencies would determine the dependency versions of the other tools.
package golangcilint
