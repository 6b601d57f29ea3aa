#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the last release, or another version, into _output/last-release: the program ovnkube-slb, its manifests, and
# the commit. The tests of an upgrade start from it (test/e2e/upgrade_test.go). If the history does not have the last
# release, there is none, and these tests are skipped.
#
#   contrib/last-release.sh [VERSION]    default: the last tag before this commit
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/_output/last-release
first=950b0d816c55599cdd8f828ac3e0cd757dd9ff3a # until the first release has a tag

version=${1:-$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || echo "$first")}
if ! commit=$(git rev-parse --verify --quiet "$version^{commit}"); then
	rm -rf "$out"
	echo "last-release: the history has no $version: git fetch --unshallow --tags" >&2
	exit "$#"
fi
if [[ $(cat "$out/commit" 2>/dev/null) == "$commit" ]]; then
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/source" "$work/built" "$(dirname "$out")"
git archive "$commit" | tar -x -C "$work/source"
(cd "$work/source" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$version" \
	-o "$work/built/" ./go-controller/cmd/ovnkube-slb)
mv "$work/source/dist/manifests" "$work/built/"
echo "$commit" >"$work/built/commit"
rm -rf "$out"
mv "$work/built" "$out"
