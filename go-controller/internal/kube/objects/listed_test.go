// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A plan draws the addresses that the controller will draw, which knows only a cover of many long lists of a namespace.
func TestPlansLimitWhatServicesList(t *testing.T) {
	o := &Objects{}
	for i := range 5 {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: fmt.Sprint(i)}}
		for j := range 2500 {
			s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, fmt.Sprintf("10.%d.%d.%d", i, j>>8, j&255))
		}
		o.Services = append(o.Services, s)
	}
	l := o.Snapshot(time.Unix(0, 0)).Listed
	if a := netip.MustParseAddr("10.4.0.1"); len(l) != 50 || l.HasExactly(a) || !l.Has(a) {
		t.Errorf("%d prefixes", len(l))
	}
}
