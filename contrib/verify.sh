#!/usr/bin/env bash
# Two checks: what `make generate` writes is what is committed, and every lint rule still
# bites: the violations of contrib/lint-bites are planted for a moment, and each must be named.
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

planted=()
trap 'rm -f "${planted[@]}"' EXIT
while read -r rule dir code; do
	[[ -z $rule || $rule == \#* ]] && continue
	number=${#planted[@]} # identifiers must be unique in a package
	file=$dir/zz_planted_$number.go
	[[ $code != *testing.T* ]] || file=${file%.go}_test.go
	planted+=("$file")
	package=$(go list -f '{{.Name}}' "./$dir")
	{
		echo "// SPDX-License-Identifier: Apache-2.0"
		echo
		echo "package $package"
		printf '%b\n' "${code//lanted/lanted$number}"
	} >"$file"
done <contrib/lint-bites
mapfile -t dirs < <(dirname "${planted[@]}" | sort -u)
found=$(contrib/lint.sh "$linter" run "${dirs[@]/#/./}" 2>&1 || true)
grep -q zz_planted_ <<<"$found" || {
	echo "$found" >&2
	exit 1
}

failed=0 number=0
while read -r rule dir code; do
	[[ -z $rule || $rule == \#* ]] && continue
	if grep -q "zz_planted_${number}[._].*($rule)" <<<"$found"; then
		echo "bites: $rule in $dir"
	else
		echo "DOES NOT BITE: $rule in $dir: $code" >&2
		failed=1
	fi
	number=$((number + 1))
done <contrib/lint-bites
exit $failed
