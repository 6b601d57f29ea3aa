#!/usr/bin/env bash
# Runs the controller of frr-k8s, from its Go module and pinned: its dependencies are not those of this module.
set -euo pipefail
. "$(dirname "$0")/tool.sh"
run_tool frr-k8s-controller github.com/metallb/frr-k8s/cmd/frr-k8s-controller@v0.0.25 "" "$@"
