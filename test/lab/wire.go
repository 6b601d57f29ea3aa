// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
)

// startWire starts the switch of the segments that share a wire. It is an Open vSwitch because not every kernel has
// VLAN-aware bridges.
func (l *Lab) startWire(ctx context.Context) error {
	if err := l.startDatabase(ctx, switchNetns, "ovs", switchSchema); err != nil {
		return err
	}
	bridge := DMZ().Bridge
	args := []string{"--no-wait", "init", "--", "add-br", bridge, "--", "set", "Bridge", bridge, "datapath_type=netdev"}
	for _, p := range l.ports() {
		if p.wire == "" {
			continue
		}
		args = append(args, "--", "add-port", p.wire, p.peerDev)
		if p.vlan != allVLANs {
			args = append(args, fmt.Sprintf("tag=%d", p.vlan), "vlan_mode=access")
		}
	}
	if _, err := l.vsctlIn(ctx, switchNetns, args...); err != nil {
		return fmt.Errorf("configure the wire: %w", err)
	}
	return l.startSwitch(ctx, switchNetns, func(ctx context.Context, control string) error {
		_, err := run(ctx, "ovs-appctl", "-t", control, "fdb/show", bridge)
		return err
	})
}
