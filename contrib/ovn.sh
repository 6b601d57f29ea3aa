#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fetches OVN 25.03 and Open vSwitch 3.5, the packages of Debian 13, into the cache, for the lab (package ovnprefix),
# where the installed OVN is older and they are not there yet. Nothing is installed by it: the programs run with the
# loader and the libraries that they were built for, which are in the cache, too. LAB_OVN_PREFIX=/usr has the lab take
# the installed ones.
set -eu

oldest=25.03
prefix=${SLB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ovnkube-slb}/ovn-trixie

say() { printf 'ovn: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

new_enough() {
	version=$(ovn-nbctl --version 2>/dev/null | sed -n '1s/.* //p')
	[ -n "$version" ] && [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1)" = "$oldest" ]
}

# mirror is where this machine has Debian from, or where everybody has it from.
mirror() {
	# shellcheck disable=SC2016 # apt-get replaces these.
	found=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' 2>/dev/null | head -n 1)
	printf '%s' "${found:-https://deb.debian.org/debian}"
}

get() (
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root"
	: >"$work/status"
	printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s trixie main\n' "$(mirror)" >"$work/sources.list"
	cat >"$work/apt.conf" <<-END
		Dir::Etc::SourceList "$work/sources.list";
		Dir::Etc::SourceParts "-";
		Dir::State::Lists "$work/lists";
		Dir::State::Status "$work/status";
		Dir::Cache "$work";
		APT::Sandbox::User "root";
	END
	for step in update '--yes --no-install-recommends --download-only install ovn-central ovn-host openvswitch-switch'; do
		# shellcheck disable=SC2086 # Words.
		APT_CONFIG=$work/apt.conf apt-get -qq $step >"$work/log" 2>&1 || { cat "$work/log" >&2; die "apt-get $step failed, see above"; }
	done
	for package in "$work"/archives/lib*.deb "$work"/archives/zlib*.deb "$work"/archives/ovn-*.deb "$work"/archives/openvswitch-*.deb; do
		dpkg-deb --extract "$package" "$work/root"
	done
	new=$prefix.new
	rm -rf "$new"
	mkdir -p "$new/bin" "$new/sbin" "$new/share" "$new/lib"
	cp -a "$work"/root/usr/lib/*-linux-gnu*/. "$new/lib/"
	cp -a "$work/root/usr/share/ovn" "$work/root/usr/share/openvswitch" "$new/share/"
	for program in bin/ovn-appctl bin/ovn-controller bin/ovn-nbctl bin/ovn-northd bin/ovn-sbctl bin/ovn-trace bin/ovs-appctl \
		bin/ovs-dpctl bin/ovs-ofctl bin/ovs-vsctl bin/ovsdb-client bin/ovsdb-tool sbin/ovsdb-server sbin/ovs-vswitchd; do
		from=$work/root/usr/$program
		[ -e "$from" ] || from=$work/root/usr/lib/openvswitch-switch/${program#sbin/}
		cp "$from" "$new/$program"
		patchelf --set-interpreter "$prefix/lib/$(basename "$(patchelf --print-interpreter "$from")")" \
			--force-rpath --set-rpath "$prefix/lib" "$new/$program"
	done
	rm -rf "$prefix"
	mv "$new" "$prefix"
	"$prefix/bin/ovn-nbctl" --version >"$work/log" 2>&1 || { cat "$work/log" >&2; rm -rf "$prefix"; die "the programs of Debian 13 do not run here"; }
	say "$(head -n 1 "$work/log"), of Debian 13, is in $prefix"
)

if new_enough || [ -d "$prefix" ]; then
	exit
fi
for needed in apt-get dpkg-deb patchelf; do
	command -v $needed >/dev/null || die "no $needed here"
done
get
