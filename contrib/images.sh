#!/usr/bin/env bash
# Build the controller's image with whichever of podman and docker there is.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v podman || command -v docker) || {
	echo "make images needs podman or docker" >&2
	exit 1
}
exec "$tool" build -f dist/images/Containerfile --build-arg VERSION="$1" -t "ghcr.io/ovnkube-slb/ovnkube-slb:$1" .
