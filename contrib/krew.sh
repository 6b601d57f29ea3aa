#!/usr/bin/env bash
# Builds the kubectl plugin for the platforms of dist/krew/slb.yaml, and writes archives and the manifest for krew to
# _output/krew. `contrib/krew.sh v1.2.3 https://example.org/releases/v1.2.3` names the version and where the archives
# will be; PLATFORMS limits what is built.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?version, for example v1.2.3}
url=${2:?URL of the directory with the archives}
out=_output/krew
rm -rf "$out"
mkdir -p "$out"
manifest=$out/slb.yaml
sed -e "s|VERSION$|$version|" -e "s|URL/|$url/|" dist/krew/slb.yaml >"$manifest"
for platform in ${PLATFORMS:-$(sed -n 's/.*sha256: SHA256-//p' dist/krew/slb.yaml)}; do
	dir=$(mktemp -d)
	CGO_ENABLED=0 GOOS=${platform%-*} GOARCH=${platform#*-} go build -trimpath \
		-ldflags "-s -w -X main.version=$version" -o "$dir/kubectl-slb" ./go-controller/cmd/kubectl-slb
	cp LICENSE "$dir/"
	archive=$out/kubectl-slb-$platform.tar.gz
	# Equal programs have equal archives.
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$dir" -c LICENSE kubectl-slb | gzip -n >"$archive"
	rm -r "$dir"
	sum=$(sha256sum "$archive")
	sed -i "s|SHA256-$platform\$|${sum%% *}|" "$manifest"
done
if grep -n 'SHA256-' "$manifest"; then
	echo "platforms without an archive: set PLATFORMS to none of them, or build all" >&2
fi
