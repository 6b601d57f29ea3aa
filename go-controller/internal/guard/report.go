// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// report sets the value of an annotation. The report is urgent unless it is empty.
func report[M ~map[K]V, K comparable, V any](r *nodelease.Reporter, annotation string, what M) {
	write(r, annotation, what, len(what) > 0)
}

// write encodes and reports a value.
func write(r *nodelease.Reporter, annotation string, what any, grave bool) {
	text, err := json.Marshal(what)
	if err != nil {
		klog.ErrorS(err, "Failed to encode a report", "annotation", annotation)
		return
	}
	r.Report(annotation, string(text), grave)
}

// reportFaults reports the faults of networks. The report is urgent if there are any. It does not wait for what any
// host on a segment can make long and change often.
func (g *Guard) reportFaults(faults map[string]world.Fault) {
	text, err := convert.FaultsReport(faults)
	if err != nil {
		klog.ErrorS(err, "Failed to encode a report", "annotation", v1alpha1.AnnotationFaults)
		return
	}
	g.report.ReportAtOnce(v1alpha1.AnnotationFaults, text, len(faults) > 0)
}

// reportTunnels reports the state of OVN's tunnels; nil withdraws it. The report is never urgent: when a node is lost,
// all others have one to make.
func (g *Guard) reportTunnels(t *world.Tunnels) {
	text := ""
	if t != nil {
		var err error
		if text, err = convert.TunnelsReport(*t); err != nil {
			klog.ErrorS(err, "Failed to encode a report", "annotation", v1alpha1.AnnotationTunnels)
			return
		}
	}
	g.report.Report(v1alpha1.AnnotationTunnels, text, false)
}

// onLease returns a handler that calls observe for each version of the node's Lease, and deleted when it was deleted.
func onLease(observe func(*coordinationv1.Lease), deleted func()) func(old, now *coordinationv1.Lease) {
	return func(_, now *coordinationv1.Lease) {
		if now == nil {
			deleted()
			return
		}
		observe(now)
	}
}
