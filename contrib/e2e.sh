#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the end-to-end suite (test/e2e) with flags of ginkgo(1): --procs=N runs N labs side by side, each with its part of
# the specs. The network is in E2E_TARGET, E2E_MODE, E2E_GATEWAY and E2E_SEGMENT, the programs under test in SLB_BIN.
# With E2E_TARGET=ovnkube it needs OVN-Kubernetes (OVNKUBE, OVNKUBE_CRDS), and says so where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
network="${E2E_TARGET:-model} ${E2E_MODE:-} ${E2E_GATEWAY:-} ${E2E_SEGMENT:-}"
if [[ ${E2E_TARGET:-} == ovnkube && (-z ${OVNKUBE:-} || -z ${OVNKUBE_CRDS:-}) ]]; then
	echo "e2e: skipped on $network: OVNKUBE and OVNKUBE_CRDS do not say where OVN-Kubernetes is (CONTRIBUTING.md)"
	exit
fi
if [[ ${E2E_TARGET:-} == ovnkube && ${E2E_MODE:-} == central && $("$OVNKUBE" --help 2>&1) != *--enable-interconnect* ]]
then
	echo "e2e: skipped on $network: $OVNKUBE has interconnect only (OVN-Kubernetes of 2026)"
	exit
fi
as_root=()
[[ $(id -u) -eq 0 ]] || as_root=(sudo -E)

# Several suites may run at the same time. ginkgo runs a suite in the directory of its binary.
suite=test/e2e/e2e-$$.test
trap 'rm -f "$suite"' EXIT
go test -c -o "$suite" ./test/e2e
ginkgo=$(go tool -n ginkgo)
echo "e2e: $network, $*"
"${as_root[@]}" "$ginkgo" --no-color --timeout=2h --poll-progress-after=5m "$@" "$suite"
