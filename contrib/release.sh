#!/usr/bin/env bash
# Writes what a release consists of besides its images into _output/release: one manifest to apply per flavour, the
# chart, a software bill of materials of the program (CycloneDX), and checksums.
#
#   contrib/release.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?VERSION}
if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "VERSION \"$version\": want a semantic version, as v0.1.0" >&2
	exit 1
fi
image=ghcr.io/ovnkube-slb/ovnkube-slb
out=_output/release
rm -rf "$out"
mkdir -p "$out"

# flavour=kustomization
for flavour in central=default node=node bgp=bgp interconnect=interconnect interconnect-bgp=interconnect-bgp sdn=sdn \
	openshift=overlays/openshift openshift-sdn=overlays/openshift-sdn; do
	contrib/kustomize.sh build "dist/manifests/${flavour#*=}" |
		sed "s|^\( *image: $image\):.*|\1:$version|" >"$out/ovnkube-slb-${flavour%%=*}.yaml"
done

contrib/helm.sh package dist/chart --version "${version#v}" --app-version "$version" --destination "$out"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
program=$stage/ovnkube-slb
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$program" ./go-controller/cmd/ovnkube-slb
go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0 bin -json -version "$version" \
	-output "$out/ovnkube-slb.cdx.json" "$program"
(cd "$out" && sha256sum -- * >SHA256SUMS)
ls -l "$out"
