#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks programs of a Debian suite into the cache, as NAME-SUITE. Nothing is installed: the programs run with the
# loader and the libraries of that suite, which are unpacked, too. A directory that is there is complete, because it
# gets its name last, unless an earlier version of this project has unpacked fewer packages. To fetch newer packages,
# remove it.
#
#   contrib/unpack.sh NAME SUITE 'CHECK FILE...' PACKAGE...
#
# CHECK is a program in the directory that must run with --version, and FILE one that a complete directory has.
#
# The programs are those of all packages that begin as a PACKAGE does (ovn-central: ovn-*), at their paths below /usr.
set -eu

name=$1 suite=$2 check=${3%% *} files=$3
shift 3
prefix=${SLB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ovnkube-slb}/$name-$suite
work=$prefix.new
built=$work/built
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

die() { printf '%s of Debian %s: %s\n' "$name" "$suite" "$*" >&2; exit 1; }

# mirror is where this machine gets Debian from, or else the public one.
mirror() {
	# shellcheck disable=SC2016 # apt-get replaces these.
	found=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' 2>/dev/null | head -n 1)
	printf '%s' "${found:-https://deb.debian.org/debian}"
}

# apt runs apt-get on lists, a state and a cache of its own. No package counts as installed.
apt() {
	APT_CONFIG=$work/apt.conf apt-get -qq "$@" >"$work/log" 2>&1 ||
		die "apt-get $1: $(sed -n 's/^E: //p' "$work/log" | head -n 1)"
}

download() {
	mkdir -p "$work/lists/partial" "$work/archives/partial"
	: >"$work/status"
	printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$(mirror)" "$suite" >"$work/sources.list"
	cat >"$work/apt.conf" <<-END
		Dir::Etc::SourceList "$work/sources.list";
		Dir::Etc::SourceParts "-";
		Dir::State::Lists "$work/lists";
		Dir::State::Status "$work/status";
		Dir::Cache "$work";
		APT::Sandbox::User "root";
		APT::Update::Error-Mode "any";
	END
	apt update
	apt install --yes --no-install-recommends --download-only "$@"
}

# is_wanted ARCHIVE PACKAGE...: whether the archive is of a package that begins as one of these does.
is_wanted() (
	archive=$1
	shift
	for package in "$@"; do
		case $archive in "${package%%-*}"[-_]*) exit 0 ;; esac
	done
	exit 1
)

extract() {
	for archive in "$work"/archives/*.deb; do
		if is_wanted "$(basename "$archive")" "$@"; then
			dpkg-deb --extract "$archive" "$work/programs"
		else
			dpkg-deb --extract "$archive" "$work/libraries"
		fi
	done
	mkdir -p "$built/lib"
	for libraries in "$work"/*/usr/lib/*-linux-gnu*; do
		cp -a "$libraries/." "$built/lib/"
	done
	rm -rf "$work"/programs/usr/lib/*-linux-gnu* "$work"/programs/usr/share/doc "$work"/programs/usr/share/man
	cp -a "$work/programs/usr/." "$built/"
	# An installation makes it one of several alternatives for sbin/ovs-vswitchd.
	[ ! -e "$built/lib/openvswitch-switch/ovs-vswitchd" ] || mv "$built/lib/openvswitch-switch/ovs-vswitchd" "$built/sbin/"
}

# relocate has each program use the loader and the libraries in the directory instead of those of this machine.
relocate() {
	find "$built" -path "$built/share" -prune -o -type f -perm -u+x ! -name '*.so*' -print >"$work/files"
	while read -r file; do
		interpreter=$(patchelf --print-interpreter "$file" 2>/dev/null) || continue # It is a script.
		own=$(patchelf --print-rpath "$file" | sed "s|/usr/lib/[^/:]*-linux-gnu[^/:]*|$prefix/lib|g")
		patchelf --set-interpreter "$prefix/lib/$(basename "$interpreter")" \
			--force-rpath --set-rpath "$prefix/lib${own:+:$own}" "$file"
	done <"$work/files"
}

# runs calls the loader, which the program names at a path where it is not yet.
runs() {
	loader=$built/lib/$(basename "$(patchelf --print-interpreter "$built/$check")")
	"$loader" --library-path "$built/lib:$built/lib/$name" "$built/$check" --version >"$work/log" 2>&1 ||
		die "the programs do not run here: $(tail -n 1 "$work/log")"
}

complete() { for file in $files; do [ -e "$prefix/$file" ] || return 1; done; }

! complete || exit 0
for needed in apt-get dpkg-deb patchelf flock "$keyring"; do
	command -v "$needed" >/dev/null || [ -r "$needed" ] || die "no $needed here"
done
mkdir -p "$(dirname "$prefix")"
exec 9>"$prefix.lock"
flock 9
! complete || exit 0 # by another process, meanwhile
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
download "$@"
extract "$@"
relocate
runs
[ ! -d "$prefix" ] || mv "$prefix" "$work/former"
mv "$built" "$prefix"
printf '%s of Debian %s is in %s: %s\n' "$name" "$suite" "$prefix" "$(head -n 1 "$work/log")"
