# Sourced by the scripts of tools that are built from source and pinned, because their dependencies are not those of this
# module. A tool is built once and kept in the cache: go run would link it at each call.
#
#   run_tool NAME MODULE@VERSION LDFLAGS ARG...
run_tool() {
	local name=$1 package=$2 ldflags=$3 cache program stage
	shift 3
	cache=${SLB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ovnkube-slb}/tools
	program=$cache/$name-${package##*@}
	if [[ ! -x $program ]]; then
		mkdir -p "$cache"
		stage=$(mktemp -d -p "$cache")
		GOBIN=$stage GOFLAGS= go install -ldflags "$ldflags" "$package"
		mv "$stage"/* "$program" # at once: another process may build it, too
		rmdir "$stage"
	fi
	exec "$program" "$@"
}
