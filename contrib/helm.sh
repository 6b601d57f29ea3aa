#!/usr/bin/env bash
# Runs helm, from source and pinned: its dependencies are not those of this module.
set -euo pipefail
. "$(dirname "$0")/tool.sh"
# Without these, helm assumes Kubernetes 1.20.
version=helm.sh/helm/v3/pkg/chartutil.k8sVersion
run_tool helm helm.sh/helm/v3/cmd/helm@v3.19.0 "-X ${version}Major=1 -X ${version}Minor=34" "$@"
