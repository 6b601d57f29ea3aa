#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the packages of the contract level: those whose tests import test/contract, but not the ones that only
# `make nightly` runs.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rl --include='*_test.go' '"github.com/ovnkube-slb/ovnkube-slb/test/contract"' go-controller test |
	xargs -n 1 dirname | sort -u | grep -vE '^test/(release|chart|e2e)$|^go-controller/test/container$' | sed 's|^|./|'
