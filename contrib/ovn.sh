#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks OVN and Open vSwitch of a Debian suite into the cache, for the lab (test/lab/ovnprefix), and its nftables: the
# EgressServices of OVN-Kubernetes need newer ones than Debian 12 has.
#
#   contrib/ovn.sh SUITE    for example trixie (OVN 25.03, Open vSwitch 3.5) or sid (the newest that Debian has)
set -eu

exec "$(dirname "$0")/unpack.sh" ovn "${1:?SUITE, for example trixie or sid}" "bin/ovn-nbctl sbin/nft" \
	ovn-central ovn-host openvswitch-switch nftables
