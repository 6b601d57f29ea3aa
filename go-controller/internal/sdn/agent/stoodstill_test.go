// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// stillVIPs are addresses of the node of a test, and expired is the one that its kernel removes.
var (
	expired   = netip.MustParseAddr("10.50.0.60")
	stillVIPs = []netip.Addr{expired, netip.MustParseAddr("fd00:50::60")}
)

// assignedNode returns a version of the Node whose annotation lists addresses.
func assignedNode(version string, list ...netip.Addr) *corev1.Node {
	var held []world.Held
	for _, a := range list {
		held = append(held, world.Held{Addr: a, Service: world.Key{Namespace: "shop", Name: "web"}, Interface: segment,
			Generation: 1, Shard: world.ShardID{Domain: "lan"}})
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: version,
		Annotations: map[string]string{v1alpha1.AnnotationVIPs: sdn.Format(held)}}}
}

// stoppedAgent returns an agent whose node holds stillVIPs according to version 7 of the Node, and has begun to
// announce them. It has stood still since, and its kernel has removed one of them. The API server answers as get does.
func stoppedAgent(t *testing.T, get func() (*corev1.Node, error)) *Agent {
	t.Helper()
	r := newNode(t)
	client := fake.NewClientset()
	client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		n, err := get()
		return true, n, err
	})
	a, err := New(Options{Node: "n1", Kube: client, Health: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	a.reconcile, a.stepped = r, time.Now()
	a.observe(assignedNode("7", stillVIPs...))
	if a.step(t.Context(), true); r.count() != len(stillVIPs) || len(r.claims) != len(stillVIPs) {
		t.Fatalf("%d are held and %d announced, failed %v", r.count(), len(r.claims), r.failed)
	}
	ip(t, "addr", "del", expired.String()+"/32", "dev", segment)
	a.stepped = a.stepped.Add(-lifetime)
	return a
}

// An address that has expired while the agent stood still may be another node's: the agent neither adds nor announces
// it before it knows. Those that the kernel still has are renewed.
func TestAgentThatStoodStillReadsTheNodeFirst(t *testing.T) {
	var n *corev1.Node
	failure := errors.New("the API server is away")
	a := stoppedAgent(t, func() (*corev1.Node, error) { return n, failure })
	r := a.reconcile
	for range 2 {
		a.step(t.Context(), true)
		if _, announced := r.claims[expired]; r.count() != 1 || announced || r.failed[expired] == "" || len(r.failed) != 1 {
			t.Errorf("the API server is away: %d are held, announced %t, failed %v", r.count(), announced, r.failed)
		}
		if next := a.announce(); !next.IsZero() {
			t.Errorf("an address is announced that may be another node's, at %s", next)
		}
		if why := r.unfit(); !strings.Contains(why, "stood still") {
			t.Errorf("the agent reports %q", why)
		}
	}
	n, failure = assignedNode("9", stillVIPs[1]), nil
	a.step(t.Context(), false)
	if _, announced := r.claims[expired]; r.count() != 1 || announced || len(r.failed) > 0 || r.unfit() != "" {
		t.Errorf("moved: %d are held, announced %t, failed %v, unfit %q", r.count(), announced, r.failed, r.unfit())
	}
	// The watch may be behind that.
	a.observe(assignedNode("8", stillVIPs...))
	a.step(t.Context(), false)
	if _, announced := r.claims[expired]; r.count() != 1 || announced {
		t.Errorf("an older version: %d are held, announced %t", r.count(), announced)
	}
	a.observe(assignedNode("10", stillVIPs...))
	a.step(t.Context(), false)
	if _, announced := r.claims[expired]; r.count() != len(stillVIPs) || !announced {
		t.Errorf("a later version: %d are held, announced %t", r.count(), announced)
	}
}

// An address that is still assigned is added and announced again.
func TestAgentThatStoodStillAddsWhatIsStillAssigned(t *testing.T) {
	a := stoppedAgent(t, func() (*corev1.Node, error) { return assignedNode("7", stillVIPs...), nil })
	a.step(t.Context(), true)
	if r := a.reconcile; r.count() != len(stillVIPs) || r.claims[expired] == nil || len(r.failed) > 0 {
		t.Errorf("%d are held, announced are %v, failed %v", r.count(), r.claims, r.failed)
	}
}

// An agent that has not stood still asks nobody: the API server may be away for long.
func TestAgentThatWorksAddsWhatIsGone(t *testing.T) {
	a := stoppedAgent(t, func() (*corev1.Node, error) {
		t.Error("the Node is read")
		return nil, errors.New("the API server is away")
	})
	a.stepped = a.stepped.Add(lifetime)
	a.step(t.Context(), true)
	if r := a.reconcile; r.count() != len(stillVIPs) || len(r.failed) > 0 {
		t.Errorf("%d are held, failed %v", r.count(), r.failed)
	}
}

// After etcd has been restored from a backup, resource versions are lower than one that was read before. What was read
// is preferred only while the watch may still be behind it.
func TestVersionsOfARestoredAPIServerAreApplied(t *testing.T) {
	for name, c := range map[string]struct {
		watched string
		after   time.Duration
		want    string
	}{
		"the watch is behind":                 {"899", time.Second, "900"},
		"the watch was behind":                {"899", 61 * time.Second, "100"},
		"the watch had delivered the version": {"900", time.Second, "100"},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(assignedNode("900", stillVIPs...))
			a, err := New(Options{Node: "n1", Kube: client, Health: "127.0.0.1:0"})
			if err != nil {
				t.Fatal(err)
			}
			a.observe(assignedNode(c.watched, stillVIPs...))
			if !a.readNode(t.Context()) {
				t.Error("the Node is not read")
			}
			<-time.After(c.after)
			if a.observe(assignedNode("100", stillVIPs...)); a.reconcile.version != c.want {
				t.Errorf("%s: version %s is applied, want %s", name, a.reconcile.version, c.want)
			}
		})
	}
}
