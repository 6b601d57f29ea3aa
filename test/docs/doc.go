// SPDX-License-Identifier: Apache-2.0

// Package docs runs the command blocks of README.md, CONTRIBUTING.md and docs, page by page and in the order of the page.
//
// What stays true:
//
//   - Every indented block, and every fenced block that is not marked text or yaml, is a command block. There is no list of
//     exceptions: a command that no runner knows fails the test, which names file and line.
//   - A block of kubectl commands runs in bash against a kube-apiserver of its own that has seen nothing but the blocks before it
//     and testdata/cluster.yaml, the parts of a cluster that the pages expect to exist. Nothing is waited for in between.
//   - A block marked yaml is accepted by the same API server, by server-side dry run.
//     One that is a scrape configuration of Prometheus keeps the ports for metrics of the Pods that the pages install.
//   - The target of a make command is one that .ci/run makes.
//   - A block marked text is a picture: it has lines or arrows. A line of it that begins with a command fails the test.
package docs
