#!/usr/bin/env bash
# Writes what a release consists of into _output/release: one manifest to apply per flavour, the chart, an archive of the
# image per architecture, archives of the kubectl plugin with their manifest for krew, a software bill of materials of the
# program (CycloneDX), and checksums. It needs buildah, podman or docker (contrib/images.sh).
#
#   contrib/release.sh VERSION
#
# ARCHITECTURES (default "amd64 arm64") limits the images, PLATFORMS the plugins (contrib/krew.sh).
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

read -ra architectures <<<"${ARCHITECTURES:-amd64 arm64}"
ARCHIVES=$PWD/$out contrib/images.sh "$version" "${architectures[@]}"

contrib/krew.sh "$version" "https://github.com/ovnkube-slb/ovnkube-slb/releases/download/$version"
cp _output/krew/*.tar.gz _output/krew/slb.yaml "$out"

go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0 bin -json -version "$version" \
	-output "$out/ovnkube-slb.cdx.json" "_output/images/$version/${architectures[0]}/out/ovnkube-slb"
(cd "$out" && sha256sum -- * >SHA256SUMS)
ls -l "$out"
