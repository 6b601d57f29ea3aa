// SPDX-License-Identifier: Apache-2.0

// Package frrk8s tests what we send to frr-k8s with its own controller (contrib/frr-k8s.sh) and a real API server: it
// merges what the product says can be merged, and nothing else.
package frrk8s
