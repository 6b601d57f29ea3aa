#!/usr/bin/env bash
# Runs helm, from source and pinned: its dependencies are not those of this module.
set -euo pipefail
# Without these, helm assumes Kubernetes 1.20.
version=helm.sh/helm/v3/pkg/chartutil.k8sVersion
exec go run -ldflags "-X ${version}Major=1 -X ${version}Minor=34" helm.sh/helm/v3/cmd/helm@v3.19.0 "$@"
