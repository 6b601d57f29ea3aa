// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// requirement is a file or program that the lab needs, and the Debian package that contains it.
type requirement struct{ path, pkg string }

func requirements() []requirement {
	all := []requirement{
		{"ip", "iproute2"},
		{"ping", "iputils-ping"},
		{"arping", "arping"},
		{"ndisc6", "ndisc6"},
		{"ethtool", "ethtool"},
		{"nft", "nftables"},
		{"tcpdump", "tcpdump"},
		{"curl", "curl"},
		{"jq", "jq"},
		{"ovsdb-server", "openvswitch-common"},
		{"ovsdb-tool", "openvswitch-common"},
		{"ovs-vswitchd", "openvswitch-switch"},
		{"ovs-vsctl", "openvswitch-switch"},
		{"ovs-appctl", "openvswitch-common"},
		{ovnprefix.Schema(switchSchema), "openvswitch-common"},
		{"ovn-nbctl", "ovn-common"},
		{"ovn-northd", "ovn-central"},
		{ovnprefix.Schema("ovn/ovn-nb.ovsschema"), "ovn-common"},
		{"ovn-controller", "ovn-host"},
	}
	for _, program := range frr.Programs(frr.Prefix()) {
		all = append(all, requirement{program, "frr"})
	}
	return all
}

// Preflight returns an error that lists everything the machine lacks for a lab, or nil if it lacks nothing.
func Preflight() error {
	if os.Geteuid() != 0 {
		return errors.New("the lab makes network namespaces: run it as root")
	}
	var missing []error
	for _, r := range requirements() {
		if _, err := exec.LookPath(r.path); err == nil {
			continue
		}
		if _, err := os.Stat(r.path); filepath.IsAbs(r.path) && err == nil {
			continue
		}
		missing = append(missing, fmt.Errorf("%s not found: install package %s", r.path, r.pkg))
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		missing = append(missing, fmt.Errorf("device for Open vSwitch's local ports: %w: load kernel module tun", err))
	}
	if len(missing) > 0 {
		return fmt.Errorf("the lab needs more than is installed, contrib/setup.sh installs it:\n%w", errors.Join(missing...))
	}
	return nil
}
