#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what `make demo` and `make test` need on Debian or Ubuntu, by apt and with sudo where not root, and checks
# for Go. When all is there it only looks, which takes a fraction of a second. No service is started, stopped or
# restarted by it, and those that it installs do not start at boot either: the lab runs their programs itself, in
# network namespaces.
set -eu

# arping stands for either package that has the program; they exclude each other.
packages='openvswitch-switch openvswitch-common ovn-central ovn-host ovn-common frr frr-pythontools prometheus
	iproute2 iputils-ping ethtool tcpdump arping ndisc6 nftables jq curl ca-certificates make git gcc libc6-dev
	patchelf debian-archive-keyring buildah mkdocs mkdocs-material'
# What OVN-Kubernetes itself calls on a node.
[ -z "${OVNKUBE:-}" ] || packages="$packages iptables"
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
policy=/usr/sbin/policy-rc.d
saved=$policy.before-ovnkube-slb

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

installed() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_packages() {
	for package in $packages; do
		installed "$package" && continue
		[ "$package" = arping ] && installed iputils-arping && continue
		printf '%s ' "$package"
	done
}

# invoke-rc.d(8) and deb-systemd-invoke(1p) ask policy-rc.d before they start, stop or restart a service; 101 forbids
# it.
forbid_services() {
	[ -e "$saved" ] || [ ! -e "$policy" ] || as_root mv "$policy" "$saved"
	printf '#!/bin/sh\n# By ovnkube-slb contrib/setup.sh, for the time of an installation.\nexit 101\n' | as_root tee "$policy" >/dev/null
	as_root chmod 755 "$policy"
}

# Also puts in order what a run that was killed has left.
restore_services() {
	if [ -e "$saved" ]; then
		as_root mv "$saved" "$policy"
	elif grep -qs 'ovnkube-slb contrib/setup.sh' "$policy"; then
		as_root rm "$policy"
	fi
}

# Packages enable their services for the next boot, whatever policy-rc.d says: units for systemd, where that is, and
# init scripts.
disable_services() {
	for package in "$@"; do
		for script in $(dpkg -L "$package" | sed -n 's|^/etc/init\.d/||p'); do
			as_root update-rc.d "$script" disable >/dev/null 2>&1 || say "could not disable $script: it may start at the next boot"
		done
		command -v systemctl >/dev/null || continue
		for unit in $(dpkg -L "$package" | sed -n 's|.*/systemd/system/\([^/@]*\.service\)$|\1|p'); do
			as_root systemctl --quiet disable "$unit" >/dev/null 2>&1 || say "could not disable $unit: it may start at the next boot"
		done
	done
}

apt() {
	as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1
}

install_packages() {
	command -v apt-get >/dev/null || die "no apt-get here: install these, or your distribution's packages for them, by hand: $*"
	[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || die "not root and no sudo: as root, run apt-get install $*"
	say "installing $*"
	log=$(mktemp)
	trap 'restore_services; rm -f "$log"' EXIT
	trap 'exit 1' HUP INT TERM
	forbid_services
	apt update || say "apt-get update failed, trying with the lists that are there: $(tail -n 1 "$log")"
	apt install --yes --no-install-recommends --no-upgrade "$@" || { cat "$log" >&2; die "apt-get install failed, see above"; }
	restore_services
	disable_services "$@"
}

# Go from 1.21 on fetches the version that go.mod asks for by itself, unless GOTOOLCHAIN=local forbids it.
check_go() {
	want=$(sed -n 's/^go //p' "$root/go.mod")
	if ! command -v go >/dev/null; then
		[ ! -x /usr/local/go/bin/go ] || die "Go is in /usr/local/go/bin, but that is not in PATH: export PATH=\$PATH:/usr/local/go/bin"
		die "Go $want or later is needed, and packages of this distribution may be older. Get it from https://go.dev/dl/, for instance:
  curl -L https://go.dev/dl/go$want.linux-$(dpkg --print-architecture 2>/dev/null || echo amd64).tar.gz | sudo tar -C /usr/local -xz
  export PATH=\$PATH:/usr/local/go/bin"
	fi
	(cd "$root" && go list -m >/dev/null) || die "go $want or later is needed (see above what the installed one says): get it from https://go.dev/dl/"
}

if [ -e "$saved" ] || grep -qs 'ovnkube-slb contrib/setup.sh' "$policy"; then
	restore_services
fi
missing=$(missing_packages)
if [ -n "$missing" ]; then
	# shellcheck disable=SC2086 # A list of names.
	install_packages $missing
fi
# Each says why where it can't be had. The lab runs the newest OVN that is there.
[ -n "${LAB_OVN_PREFIX:-}" ] || for suite in sid trixie; do "$root/contrib/ovn.sh" "$suite" || :; done
[ -n "${LAB_FRR_PREFIX:-}" ] || "$root/contrib/frr.sh" trixie || :
[ -e /dev/net/tun ] || as_root modprobe tun || die "no /dev/net/tun, which Open vSwitch needs: load kernel module tun"
check_go
