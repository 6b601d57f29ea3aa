#!/usr/bin/env bash
# Builds the controller's image with CONTAINER_TOOL, or else with podman or docker, whichever is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v "${CONTAINER_TOOL:-podman}" || command -v docker) || {
	echo "make images needs podman or docker" >&2
	exit 1
}
exec "$tool" build -f dist/images/Containerfile --build-arg VERSION="$1" -t "ghcr.io/ovnkube-slb/ovnkube-slb:$1" .
