#!/usr/bin/env bash
# Two checks: what `make generate` writes is what is committed, and every lint rule still
# bites: each violation under contrib/lint-bites is planted for a moment and must be named.
set -euo pipefail
cd "$(dirname "$0")/.."
linter=$1

before=$(git status --porcelain)
contrib/generate.sh
if [[ $(git status --porcelain) != "$before" ]]; then
	git status --short
	echo "generated files differ from what is committed: run make generate" >&2
	exit 1
fi

failed=0
while read -r rule dir code; do
	[[ -z $rule || $rule == \#* ]] && continue
	package=$(go list -f '{{.Name}}' "./$dir")
	file=$dir/zz_planted_violation.go
	[[ $code != *testing.T* ]] || file=${file%.go}_test.go
	trap 'rm -f "$file"' EXIT
	{
		echo "// SPDX-License-Identifier: Apache-2.0"
		echo
		echo "package $package"
		printf '%b\n' "$code"
	} >"$file"
	found=$(contrib/lint.sh "$linter" run "./$dir" 2>&1 || true)
	if grep -q "zz_planted_violation.*($rule)" <<<"$found"; then
		echo "bites: $rule in $dir"
	else
		echo "DOES NOT BITE: $rule in $dir: $code" >&2
		failed=1
	fi
	rm -f "$file"
done <contrib/lint-bites
exit $failed
