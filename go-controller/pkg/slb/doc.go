// SPDX-License-Identifier: Apache-2.0

// Package slb is the controller: it gives Services of type LoadBalancer addresses from
// pools and makes OVN answer for them. It runs by itself (cmd/ovnkube-slb) or inside
// another process, which hands in its clients and has its own leader election:
//
//	controller, err := slb.New(slb.Options{
//		Kube:           kubeClient,
//		Config:         restConfig,
//		NB:             slb.Endpoint{Address: "unix:/var/run/ovn/ovnnb_db.sock"},
//		SB:             slb.Endpoint{Address: "unix:/var/run/ovn/ovnsb_db.sock"},
//		ClusterSubnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
//		ServiceSubnets: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
//		Registerer:     prometheus.DefaultRegisterer,
//	})
//	if err != nil {
//		return err
//	}
//	// In leader election's OnStartedLeading; returns when ctx ends.
//	return controller.Run(ctx)
//
// Invariants:
//   - Each pass decides everything anew from one snapshot; what was decided before counts
//     only as far as the API server does not show it yet.
//   - Nothing is decided before all objects have been read, and nothing is written to OVN
//     before its databases have: a restart changes nothing.
//   - A new address is in a status once OVN has it, or OVN is known not to take it: its databases are away, or
//     refuse it. An address that a Service has is never taken away for such a reason.
//   - A Service that restricts its clients in a way that is not enforced is not announced.
package slb
