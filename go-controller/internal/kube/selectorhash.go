// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

// keptHash keeps the hash of the selector of a Service, and not the selector: that may have a megabyte.
type keptHash struct{ text atomic.Pointer[string] }

func (k *keptHash) get(compute func() string) string {
	if known := k.text.Load(); known != nil {
		return *known
	}
	text := compute() // perhaps by two decisions at once, which get the same
	k.text.Store(&text)
	return text
}

// selectorHash returns world.Service.SelectorHash for a new version of a Service. last is nil if there was none.
func selectorHash(last *service, now *corev1.Service) func(compute func() string) string {
	if last != nil && last.world != nil && last.world.SelectorHash != nil &&
		maps.Equal(last.object.Spec.Selector, now.Spec.Selector) {
		return last.world.SelectorHash
	}
	return new(keptHash).get
}
