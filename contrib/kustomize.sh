#!/usr/bin/env bash
# Runs kustomize, from source and pinned: its dependencies are not those of this module.
set -euo pipefail
. "$(dirname "$0")/tool.sh"
run_tool kustomize sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 "" "$@"
