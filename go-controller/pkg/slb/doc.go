// SPDX-License-Identifier: Apache-2.0

// Package slb is the controller for embedding. It allocates addresses from pools to Services of type LoadBalancer and
// programs OVN to answer for them. It runs standalone (cmd/ovnkube-slb) or embedded in another process, which passes
// in its clients and runs its own leader election:
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
//   - A Controller that has not been run, or whose context has ended, writes nothing.
//   - A restart changes nothing: nothing is written before all objects and OVN's databases have been read.
//   - A Service whose client restrictions are not enforced is not announced.
package slb
