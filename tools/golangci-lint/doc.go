// SPDX-License-Identifier: Apache-2.0

// Package golangcilint lists golangci-lint as a tool. It is a separate module, because golangci-lint has many
// dependencies. In a module with the other tools, they would determine which versions of dependencies these tools use.
package golangcilint
