#!/usr/bin/env bash
# Run golangci-lint, built once from the pinned version in $1, with the other arguments.
set -euo pipefail
linter=$1
shift
bin=$SLB_CACHE/golangci-lint-${linter##*@}
if [[ ! -x $bin/golangci-lint ]]; then
	echo "building ${linter##*/} (about 2 minutes, once)"
	GOBIN=$bin GOFLAGS= go install "$linter"
fi
exec "$bin/golangci-lint" "$@"
