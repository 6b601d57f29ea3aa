// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
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
