// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"maps"
	"slices"
)

// Any host on a segment can send our routers what they learn from: without limits, 60,000 unsolicited neighbor
// advertisements became 85,000 MAC bindings, which took 750 MB in ovs-vswitchd on every node. Two limits bound the
// number of bindings: how many are learned per second, and how long one stays that is not used.
//
// Any client can also send what ovn-controller answers: packets to a port without a backend (reject) or to a port of a
// router itself (tcp-reset, icmp errors), and packets that have reached their last hop (icmp errors). OVN-Kubernetes
// limits the same on its own routers.
const (
	// bindingAge is options:mac_binding_age_threshold of a router (ovn-nb(5)), in seconds, as OVN-Kubernetes has it for
	// its own gateway routers.
	bindingAge = "300"
	// learningRate is how many packets per second each logical flow passes to ovn-controller to learn from, or to
	// reply to, on each chassis. It is OVN-Kubernetes' rate.
	learningRate = 25
	// bfdRate is the same for BFD packets (RFC 5881) with the default gateway. During a planned move there are 100 per
	// second.
	bfdRate = 500
	// errorRate is the same for what ovn-controller answers with an error. It is OVN-Kubernetes' rate, too.
	errorRate = 25
	// rejectRate is how many packets per second to ports without a backend are answered on each chassis, for all Services
	// together: each port has a logical flow of its own, and tenants decide how many ports there are.
	rejectRate = 500
)

// protection is the name of our control plane protection policy (ovn-nb(5), Copp).
const protection = "slb"

// protectedRates are the limits in packets per second by protocol of the policy.
func protectedRates() map[string]int {
	return map[string]int{"arp": learningRate, "arp-resolve": learningRate, "nd-na": learningRate, "nd-ns": learningRate,
		"nd-ns-resolve": learningRate, "bfd": bfdRate, "icmp4-error": errorRate, "icmp6-error": errorRate,
		rejected: rejectRate, "tcp-reset": errorRate}
}

// rejected is the protocol of the policy for packets to ports without a backend.
const rejected = "reject"

// protectionRef refers to the policy.
func protectionRef() Ref { return Ref{Copp, protectionRow(Copp, nil).ID} }

func protectionRow(table string, columns map[string]any, parts ...string) Row {
	if columns == nil {
		columns = map[string]any{}
	}
	return owned(table, OwnerProtection, protection, columns, parts...)
}

// protectionRows returns the policy that protects ovn-controller and the databases from packets of a segment, with its
// meters. All but one are fair: each logical flow has a meter of its own on a chassis, so that a flood of packets to
// learn from does not exhaust the limit of replies.
func protectionRows() []Row {
	var out []Row
	for _, protocol := range slices.Sorted(maps.Keys(protectedRates())) {
		name, fair := protection+"-"+protocol, protocol != rejected
		band := protectionRow(MeterBand, map[string]any{
			"action": "drop", "rate": protectedRates()[protocol], "burst_size": 0,
		}, protocol)
		out = append(out, band, protectionRow(Meter, map[string]any{
			"name": name, "unit": "pktps", "fair": &fair, "bands": []Ref{{band.Table, band.ID}},
		}, protocol))
	}
	return append(out, protectionRow(Copp, map[string]any{"name": protection, "meters": protectionMeters()}))
}

// protectionMeters are the names of the meters by protocol.
func protectionMeters() map[string]string {
	meters := map[string]string{}
	for protocol := range protectedRates() {
		meters[protocol] = protection + "-" + protocol
	}
	return meters
}

// protection returns a policy for a node's router with the same meters. It goes with the router, not with the last
// shard: ovsdb-server leaves references to deleted load balancers in a row that loses its policy at the same time.
func (n *node) protection() Row {
	return n.row(Copp, map[string]any{"name": n.router(), "meters": protectionMeters()})
}

// protectedRouter returns the columns of a router that hosts on a segment can reach.
func protectedRouter(name string, options map[string]string) map[string]any {
	options["mac_binding_age_threshold"] = bindingAge
	return map[string]any{"name": name, "options": options, "copp": protectionRef()}
}
