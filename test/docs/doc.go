// SPDX-License-Identifier: Apache-2.0

// Package docs runs the command blocks of README.md, CONTRIBUTING.md and docs, page by page and in the order of the
// page.
//
// Invariants:
//
//   - Every indented block, and every fenced block that is not marked text or yaml, is a command block. There is no
//     list of exceptions. A command without a runner fails the test with its file and line.
//   - A block of kubectl commands runs in bash against a dedicated kube-apiserver. That API server contains only the
//     results of the preceding blocks and testdata/cluster.yaml, the parts of a cluster that the pages expect to exist.
//     The test does not wait between blocks.
//   - The same API server accepts each block marked yaml in a server-side dry run.
//     A block that is a Prometheus scrape configuration keeps the metrics ports of the Pods that the pages install.
//   - .ci/run runs the target of every make command.
//   - mkdocs builds the site of docs with --strict. Every page is in the navigation, every link and anchor exists, and
//     nothing is loaded from another host.
//   - A block marked text is a diagram with lines or arrows, or a table that kubectl prints. A line in it that begins
//     with a command fails the test.
package docs
