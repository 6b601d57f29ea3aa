#!/usr/bin/env bash
# Runs helm, from source and pinned: its dependencies are not those of this module.
set -euo pipefail
exec go run helm.sh/helm/v3/cmd/helm@v3.19.0 "$@"
