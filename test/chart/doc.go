// SPDX-License-Identifier: Apache-2.0

// Package chart tests that dist/chart is valid and renders what kustomize builds from dist/manifests. It runs helm and
// kustomize from source (contrib/helm.sh, contrib/kustomize.sh).
package chart
