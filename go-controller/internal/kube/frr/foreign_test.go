// SPDX-License-Identifier: Apache-2.0

package frr_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
)

// configuration returns an FRRConfiguration with neighbors.
func configuration(neighbors int, raw string, labels map[string]string) *frr.Configuration {
	r := frrapi.Router{ASN: 64512}
	for i := range neighbors {
		r.Neighbors = append(r.Neighbors, frrapi.Neighbor{Session: frrapi.Session{ASN: 1,
			Address: fmt.Sprintf("10.9.%d.%d", i>>8, i&255)}})
	}
	return &frr.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "7", Labels: labels,
		Annotations: map[string]string{"a": strings.Clone(raw)}}, Spec: frrapi.Spec{BGP: frrapi.BGP{
		Routers: []frrapi.Router{r}}, Raw: frrapi.Raw{Config: strings.Clone(raw)}}}
}

// Of an FRRConfiguration of others of any size, little is kept, and no rawConfig.
func TestForeignConfigurationIsBounded(t *testing.T) {
	raw := strings.Repeat("!", 1<<20)
	for name, c := range map[string]struct {
		neighbors, most int // most in KB
		unread          bool
	}{
		"rawConfig":                     {1, 4, false},
		"as many neighbors as are read": {frrapi.MaxSections - 1, 1200, false},
		"too many neighbors":            {30_000, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			const count = 10
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var kept []*frr.Configuration
			for range count {
				kept = append(kept, frr.TrimmedConfiguration(frr.TrimmedConfiguration(configuration(c.neighbors, raw, nil))))
			}
			for range 3 { // the JSON encoder keeps its buffers for two
				runtime.GC()
			}
			runtime.ReadMemStats(&after)
			if each := (int(after.HeapAlloc) - int(before.HeapAlloc)) / count >> 10; each > c.most {
				t.Errorf("%d KB of each are kept, want at most %d", each, c.most)
			}
			is := frr.Read(kept[0], []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}})
			if is.Name != "x" || len(is.Nodes) != 1 || (is.Foreign.Unread != "") != c.unread || kept[0].ResourceVersion != "7" {
				t.Errorf("%s of version %s on %v, unread: %q", is.Name, kept[0].ResourceVersion, is.Nodes, is.Foreign.Unread)
			}
		})
	}
}

// An object whose selector is too long to be kept is for any node.
func TestForeignSelectorIsBounded(t *testing.T) {
	c := configuration(1, "", nil)
	c.Spec.NodeSelector.MatchLabels = map[string]string{"a": strings.Repeat("x", frrapi.MaxSelector)}
	is := frr.Read(frr.TrimmedConfiguration(c), []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}})
	if len(is.Nodes) != 1 || !strings.Contains(is.Foreign.Unread, "bytes of nodeSelector") {
		t.Errorf("on %v, unread: %q", is.Nodes, is.Foreign.Unread)
	}
}

// Objects of ours are kept whole, and only a change of what counts is one.
func TestChangesOfConfigurations(t *testing.T) {
	ours := map[string]string{frrapi.LabelPeer: "tor"}
	trimmed := func(neighbors int, raw string, labels map[string]string) *frr.Configuration {
		return frr.TrimmedConfiguration(configuration(neighbors, raw, labels))
	}
	if is := trimmed(2, "x", ours); is.Spec.Raw.Config != "x" || len(is.Annotations) != 1 || is.Foreign != nil {
		t.Errorf("of one of ours: %+v", is)
	}
	for name, c := range map[string]struct {
		a, b *frr.Configuration
		same bool
	}{
		"other metadata":    {trimmed(2, "x", nil), trimmed(2, "x", map[string]string{"a": "b"}), true},
		"another rawConfig": {trimmed(2, "x", nil), trimmed(2, "y", nil), true},
		"a neighbor":        {trimmed(2, "x", nil), trimmed(3, "x", nil), false},
		"it becomes ours":   {trimmed(2, "x", nil), trimmed(2, "x", ours), false},
		"rawConfig in ours": {trimmed(2, "x", ours), trimmed(2, "y", ours), false},
		"none in ours":      {trimmed(2, "x", ours), trimmed(2, "x", ours), true},
		"a selector":        {trimmed(2, "x", nil), selecting("a"), false},
	} {
		if got := frr.SameContent(c.a, c.b); got != c.same {
			t.Errorf("%s: the same is %v", name, got)
		}
	}
}

// selecting returns an object for nodes with a label.
func selecting(label string) *frr.Configuration {
	c := configuration(2, "x", nil)
	c.Spec.NodeSelector.MatchLabels = map[string]string{label: ""}
	return frr.TrimmedConfiguration(c)
}
