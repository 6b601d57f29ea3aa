// SPDX-License-Identifier: Apache-2.0

// Package dist contains manifests that are part of programs.
package dist

import "embed"

// CRDs are the CustomResourceDefinitions of slb.k8s.ovn.org.
//
//go:embed manifests/crds/slb.*.yaml
var CRDs embed.FS
