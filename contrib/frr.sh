#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks FRR of a Debian suite into the cache, for the routers of the lab and of the BGP tests (test/lab/frr).
#
#   contrib/frr.sh SUITE    for example trixie (FRR 10.3); 10.7 of sid ends at once: it needs files in /usr/share/yang
set -eu

exec "$(dirname "$0")/unpack.sh" frr "${1:?SUITE, for example trixie}" 'lib/frr/bgpd lib/frr/frr-reload.py' frr frr-pythontools
