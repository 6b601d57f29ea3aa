// SPDX-License-Identifier: Apache-2.0

// Package site runs frr-k8s without containers: an API server, frr-k8s' own webhook, and for each node what its
// DaemonSet would run: its controller, its program that reports sessions, its script that reloads FRR (frr-reload.py),
// and FRR in a network namespace on a segment with a router.
package site
