#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds OVN-Kubernetes for `make e2e-ovnkube` and `lab up --network ovnkube`, from source, and says what to set. It
# needs git, Go and the internet; the release is the last one that has central mode as well as interconnect.
#
#   contrib/ovnkube.sh [--source] [DIRECTORY]    default: _output/ovnkube; --source fetches the source and prints where
set -euo pipefail
cd "$(dirname "$0")/.."
release="release-1.3"
only=
if [[ ${1:-} == --source ]]; then
	only=source
	shift
fi
out=$(realpath -m "${1:-_output/ovnkube}")
mkdir -p "$out"

if [[ ! -d $out/source ]]; then
	rm -rf "$out/source.new"
	git clone --quiet --depth 1 --branch "$release" https://github.com/ovn-kubernetes/ovn-kubernetes.git "$out/source.new"
	mv "$out/source.new" "$out/source"
fi
if [[ -n $only ]]; then
	echo "$out/source"
	exit
fi
(cd "$out/source/go-controller" && CGO_ENABLED=0 go build -mod=vendor -o "$out/ovnkube" ./cmd/ovnkube)
mkdir -p "$out/crds"
for crd in "$out"/source/dist/templates/k8s.ovn.org_*.yaml.j2; do
	if grep -q '{[{%]' "$crd"; then
		echo "$crd has variables, which only OVN-Kubernetes' own scripts fill in" >&2
		exit 1
	fi
	cp "$crd" "$out/crds/$(basename "$crd" .j2)"
done
cat <<EOF
export OVNKUBE=$out/ovnkube
export OVNKUBE_CRDS=$out/crds
EOF
