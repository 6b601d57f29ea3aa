#!/usr/bin/env bash
# Runs a program of frr-k8s, from its Go module and pinned: its dependencies are not those of this module.
#
#   contrib/frr-k8s.sh PROGRAM ARG...    of frr-k8s-controller, status (BGPSessionStates), statuscleaner (webhook)
set -euo pipefail
. "$(dirname "$0")/tool.sh"
program=${1:?PROGRAM}
shift
run_tool "frr-k8s-${program#frr-k8s-}" "github.com/metallb/frr-k8s/cmd/$program@v0.0.25" "" "$@"
