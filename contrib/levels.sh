#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs levels of tests (targets of the Makefile, CONTRIBUTING.md), one after the other, all of them even if one fails, and
# closes with the result and the time of each.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
table=
for level in "$@"; do
	printf '\n== make %s\n' "$level"
	start=$SECONDS result=passed
	"${MAKE:-make}" --no-print-directory "$level" || { result=FAILED failed=1; }
	table+=$(printf '  %-18s %6s s  %s' "$level" $((SECONDS - start)) "$result")$'\n'
done
printf '\n%s' "$table"
exit "$failed"
