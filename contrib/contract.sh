#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the packages of the contract level: those whose tests import test/contract, but not the ones that only
# `make nightly` runs. The longest comes first: go test starts them in this order, a few at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
{
	echo test/controller
	grep -rl --include='*_test.go' '"github.com/ovnkube-slb/ovnkube-slb/test/contract"' go-controller test |
		xargs -n 1 dirname | sort -u
} | awk '!seen[$0]++' | grep -vE '^test/(release|chart|e2e)$|^go-controller/test/container$' | sed 's|^|./|'
