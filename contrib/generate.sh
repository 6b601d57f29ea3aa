#!/usr/bin/env bash
# Write what is generated: deepcopy, CRDs and the admission policy's CEL, database models.
set -euo pipefail
cd "$(dirname "$0")/.."
api=./go-controller/pkg/api/v1alpha1
go tool controller-gen "object:headerFile=$api/boilerplate.go.txt" crd:crdVersions=v1 "paths=$api" output:crd:dir=dist/manifests/crds
# Rules that compare addresses are too long for markers: they are composed into the CRD and the policy.
go run "$api/rules" dist/manifests/crds/slb.k8s.ovn.org_ipaddresspools.yaml dist/manifests/admission/ippool-overlap.yaml
