#!/usr/bin/env bash
# Builds the image of a version for several architectures, as one manifest list, with CONTAINER_TOOL, or else with
# buildah, podman or docker, whichever is installed; docker can build for one architecture only. Go cross-compiles the
# programs on the host, and they stand for stage build of the Containerfile, so that neither emulation nor a builder's
# image is needed.
#
#   contrib/images.sh VERSION [ARCH...]     default: amd64 arm64 ppc64le s390x
#
# With ARCHIVES=DIRECTORY it also writes an archive per architecture there, which `docker load`, `podman load` and
# `ctr images import` accept.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?VERSION}
shift
image=ghcr.io/ovnkube-slb/ovnkube-slb:$version
architectures=("${@:-}")
[[ -n ${architectures[0]} ]] || architectures=(amd64 arm64 ppc64le s390x)
if [[ ! $version =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ || $version == latest ]]; then
	echo "VERSION \"$version\": want the tag of a version, as v0.1.0, and not latest" >&2
	exit 1
fi
for tool in ${CONTAINER_TOOL:-buildah podman docker}; do
	! command -v "$tool" >/dev/null || break
done
command -v "$tool" >/dev/null || {
	echo "make images needs buildah, podman or docker" >&2
	exit 1
}

authorities=/etc/ssl/certs/ca-certificates.crt
contexts=_output/images/$version
if [[ ${tool##*/} == docker && ${#architectures[@]} -gt 1 ]]; then
	echo "docker makes no manifest list without a registry: use buildah or podman, or name one architecture" >&2
	exit 1
fi
for arch in "${architectures[@]}"; do
	stage=$contexts/$arch
	mkdir -p "$stage/out" "$stage$(dirname $authorities)"
	cp "$authorities" "$stage$authorities"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch \
		go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$stage/out/ovnkube-slb" \
		./go-controller/cmd/ovnkube-slb
	# The last stage, whose files from stage build are those of the context.
	sed -n '/^FROM scratch/,$p' dist/images/Containerfile | sed 's/^COPY --from=build /COPY /' >"$stage/Containerfile"
done
case ${tool##*/} in
docker)
	docker build --platform "linux/${architectures[0]}" -f "$contexts/${architectures[0]}/Containerfile" -t "$image" \
		--iidfile "$contexts/${architectures[0]}/id" "$contexts/${architectures[0]}"
	;;
*)
	"$tool" manifest rm "$image" 2>/dev/null || true
	for arch in "${architectures[@]}"; do
		"$tool" build --platform "linux/$arch" --manifest "$image" -f "$contexts/$arch/Containerfile" \
			--iidfile "$contexts/$arch/id" "$contexts/$arch"
	done
	;;
esac
save() { # save ARCH FILE: the image of an architecture
	case ${tool##*/} in
	docker) docker save -o "$2" "$image" ;;
	*) "$tool" push "$(cat "$contexts/$1/id")" "docker-archive:$2:$image" ;;
	esac
}
if [[ -n ${ARCHIVES:-} ]]; then
	for arch in "${architectures[@]}"; do
		archive=$ARCHIVES/ovnkube-slb-$version-linux-$arch.tar
		rm -f "$archive"
		save "$arch" "$archive"
	done
fi
echo "$image: ${architectures[*]}"
