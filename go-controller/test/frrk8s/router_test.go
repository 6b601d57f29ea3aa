// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	kubefrr "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/frrk8s/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/routes"
)

const manifests = "../../../dist/manifests"

// moving is a prefix that MetalLB advertises, and then we.
const moving = "203.0.113.1/32"

// MetalLB has sessions of two nodes with a router, by frr-k8s. What `kubectl slb import` makes of its objects joins
// these sessions, and stays when MetalLB's FRRConfigurations are deleted: no session is reset, and no route missing.
// From then on FRR advertises our Services. Their status follows what frr-k8s reports, and its webhook refuses none of
// our objects.
func TestServiceReachesARouter(t *testing.T) {
	contract.TestAsRoot(t, append(frr.Programs(frr.Prefix()), "go", "ip", "bash", "python3", site.Reloader)...)
	t.Parallel()
	// A poll runs several vtysh on each node, and the test waits for few polls.
	started, err := site.Start(t.Context(), site.Config{Root: "../../..", Nodes: 2, Debounce: "50", Poll: "4s",
		Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	s := &fabric{started}
	t.Cleanup(func() {
		if t.Failed() {
			s.dump(t)
		}
		if err := s.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s.configureRouter(t)
	s.kubectl(t, "apply", "-k", filepath.Join(manifests, "crds"))
	s.kubectl(t, "wait", "--for=condition=Established", "--timeout=2m", "crd", "--all")
	s.apply(t, cluster(s.Nodes))
	if err := s.StartWebhook(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.apply(t, metalLBConfigurations(s.Nodes))
	for _, n := range s.Nodes {
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	n1, n2 := s.Nodes[0].Addr.String(), s.Nodes[1].Addr.String()
	s.awaitHops(t, moving, n1, n2)

	var lost atomic.Int32 // routes of the moving prefix that the router's kernel lost
	if err := routes.Watch(t.Context(), s.Router.Netns, func(c routes.Change, err error) {
		if err != nil || c.Deleted && c.Prefix.String() == moving {
			lost.Add(1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	before := []connections{s.connections(t, s.Nodes[0]), s.connections(t, s.Nodes[1])}
	s.importMetalLB(t)
	stop := s.controller(t, untilLeaving())
	s.apply(t, service("web", "Cluster", "n1"))
	s.apply(t, service("db", "Cluster", "n1"))
	s.awaitHops(t, "203.0.113.2/32", n1, n2) // in MetalLB's sessions
	s.takeOver(t)
	s.apply(t, service("late", "Cluster", "n1"))
	s.awaitHops(t, "203.0.113.3/32", n1, n2) // FRR has loaded what was written before, too
	s.awaitHops(t, moving, n1, n2)
	s.reach(t, "203.0.113.3")
	if n := lost.Load(); n > 0 {
		t.Errorf("the router's kernel lost the route of MetalLB %d times", n)
	}
	for i, n := range s.Nodes {
		if is := s.connections(t, n); is != before[i] {
			t.Errorf("the router's session with %s was reset: %+v, %+v before", n.Name, is, before[i])
		}
		running, restrictions, err := frrapi.ParseRunning(vtysh(t, n.FRR, "show running-config"))
		if want := netip.MustParsePrefix(moving); !slices.Contains(running[site.RouterAddr().String()], want) {
			t.Errorf("%s runs %v (%v), want %v among them; not %v", n.Name, running, err, want, restrictions)
		}
	}

	s.apply(t, service("near", "Local", "n1"))
	s.awaitHops(t, "203.0.113.4/32", n1)
	s.apply(t, service("near", "Local", "n2"))
	s.awaitHops(t, "203.0.113.4/32", n2)
	s.refuse(t)
	stop = s.drain(t, stop)
	s.announced(t)
	s.edit(t)
	stop()
	s.withoutControllers(t)

	generations := s.generations(t)
	stop = s.controller(t)
	s.apply(t, service("more", "Cluster", "n1"))
	s.awaitHops(t, "203.0.113.5/32", n2) // the other node drains
	if changed := s.changed(t, generations); len(changed) != 1 {
		t.Errorf("a new leader changed the objects %v for one more Service", changed)
	}
	s.kubectl(t, "patch", "bgppeers.slb.k8s.ovn.org", "tor", "--type=merge", "-p", `{"spec":{"backend":"GoBGP"}}`)
	await.True(t, "no objects of ours", func() bool { return len(s.generations(t)) == 0 })
	s.awaitHops(t, moving)
	stop()
	if admitted, refused := s.webhookCalls(t); admitted == 0 || refused != 1 {
		t.Errorf("the webhook admitted %d objects and refused %d, want only the foreign one refused", admitted, refused)
	}
}

// takeOver deletes MetalLB's objects, and waits until ours define the session. frr-k8s may see any moment of this: each
// of our objects has the session's BFD profile all along.
func (fb *fabric) takeOver(t *testing.T) {
	t.Helper()
	fb.kubectl(t, "-n", site.Namespace, "delete", "frrconfigurations", "metallb-n1", "metallb-n2")
	await.True(t, "objects with a session of our own", func() bool {
		profiles := strings.Fields(fb.field(t, "frrconfigurations", site.Namespace, "",
			"{range .items[*]}{.metadata.name}={.spec.bgp.routers[*].neighbors[*].bfdProfile} {end}"))
		if i := slices.IndexFunc(profiles, func(p string) bool { return !strings.HasSuffix(p, "=slow") }); i >= 0 {
			t.Fatalf("an object without the BFD profile: %s", profiles[i])
		}
		return slices.ContainsFunc(profiles, func(p string) bool { return strings.Contains(p, "-session=") })
	})
}

// connections are how often the router's session with a node was established and lost. While FRR starts, it may be more
// than once.
type connections struct {
	ConnectionsEstablished, ConnectionsDropped int
	LastResetDueTo                             string
}

func (fb *fabric) connections(t *testing.T, n *site.Node) connections {
	t.Helper()
	var all map[string]connections
	if err := fb.Router.Show(t.Context(), "show bgp neighbors "+n.Addr.String()+" json", &all); err != nil {
		t.Fatal(err)
	}
	return all[n.Addr.String()]
}

// refuse adds a peer that contradicts the others on each node. Nothing is written for it, and the nodes stay as they
// are, which the next steps show.
func (fb *fabric) refuse(t *testing.T) {
	t.Helper()
	fb.apply(t, `{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: BGPPeer, metadata: {name: refused},
  spec: {backend: FRRK8s, myASN: 64999, peerASN: 64512, peerAddress: 10.77.0.9}}`)
	await.True(t, "the peer refused", func() bool {
		return strings.Contains(fb.field(t, "bgppeers.slb.k8s.ovn.org", "", "refused",
			`{.status.conditions[?(@.type=="Ready")].reason}`), "FRRConflict")
	})
	for _, n := range fb.Nodes {
		await.NoError(t, "the state of node "+n.Name, func(ctx context.Context) error { // it may not be there yet
			is, err := fb.Plane.Get(ctx, "frrnodestates", "", n.Name, "{.status.lastConversionResult}")
			if err == nil && is != "success" {
				err = errors.New(is)
			}
			return err
		})
	}
	fb.kubectl(t, "delete", "bgppeers.slb.k8s.ovn.org", "refused")
	fb.refuseForeign(t)
}

// refuseForeign tries to add an object of others that contradicts ours. The webhook refuses it for the reason for which
// our check does.
func (fb *fabric) refuseForeign(t *testing.T) {
	t.Helper()
	var foreign frrapi.Spec
	const text = `{bgp: {routers: [{asn: 64500, neighbors: [{asn: 64999, address: 10.77.0.1}]}]}}`
	if err := yaml.Unmarshal([]byte(text), &foreign); err != nil {
		t.Fatal(err)
	}
	clients, err := kube.NewFRRClients(fb.Plane.RESTConfig(), site.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	merged := frrk8s.NewMerged(nil)
	for _, c := range fb.ours(t) {
		if conflict := merged.Add(c.Name, &c.Spec); conflict != nil {
			t.Errorf("objects of ours: %s", conflict)
		}
	}
	conflict := merged.Add("foreign", &foreign)
	if conflict == nil || conflict.Field != "spec.bgp.routers.neighbors.asn" {
		t.Errorf("we say of the foreign object: %v", conflict)
	}
	o := &kubefrr.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: foreign}
	_, err = clients.Configurations.Create(t.Context(), o, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), site.Webhook) || !strings.Contains(err.Error(), "asn") {
		t.Errorf("the webhook on the foreign object: %v", err)
	}
}

// announced waits until Services are announced by what frr-k8s reports, no longer once it reports the last session with
// the router as lost, and not known to be while the Pod with FRR is not ready.
func (fb *fabric) announced(t *testing.T) {
	t.Helper()
	is := func(status string) func() bool {
		return func() bool {
			return fb.field(t, "services", "shop", "late",
				`{.status.conditions[?(@.type=="slb.k8s.ovn.org/Announced")].status}`) == status
		}
	}
	await.True(t, "the Service announced", is("True"))
	n := fb.Nodes[1] // the other one drains
	neighbor := "neighbor " + n.Addr.String() + " shutdown"
	if err := fb.Router.Configure(t.Context(), "router bgp 64512", neighbor); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the Service without a session not announced", is("False"))
	if err := fb.Router.Configure(t.Context(), "router bgp 64512", "no "+neighbor); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the Service announced again", is("True"))
	if err := fb.SetFRRReady(t.Context(), n.Name, false); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the Service without FRR not known to be announced", is("Unknown"))
	if err := fb.SetFRRReady(t.Context(), n.Name, true); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the Service announced with FRR", is("True"))
	fb.awaitHops(t, moving, n.Addr.String())
}

// drain drains the first node. The router is told to avoid its routes before they are withdrawn. The controller can
// write no more objects after the one that says so, and is stopped then, so that FRR has as much time as it needs on a
// busy machine. The next one withdraws.
func (fb *fabric) drain(t *testing.T, stop func()) func() {
	t.Helper()
	fb.kubectl(t, "annotate", "node", "n1", "slb.k8s.ovn.org/drain=test")
	await.True(t, "an object for the node that drains", func() bool {
		return strings.Contains(fb.field(t, "frrconfigurations", site.Namespace, "",
			"{.items[*].spec.bgp.routers[*].neighbors[*].toAdvertise.withCommunity[*].community}"), leaving)
	})
	stop()
	n1 := fb.Nodes[0].Addr.String()
	await.True(t, "the routes of a node that drains to be avoided", func() bool {
		return fb.pathState(t, moving, n1) == "64500:7 graceful-shutdown"
	})
	stop = fb.controller(t)
	await.True(t, "the routes of a node that drains withdrawn", func() bool { return fb.pathState(t, moving, n1) == "" })
	fb.awaitHops(t, moving, fb.Nodes[1].Addr.String())
	return stop
}

// edit edits a field in which all objects must agree: they are replaced, and none is refused. It returns when all that
// were there are there again, so that a controller that is stopped then has nothing left to write.
func (fb *fabric) edit(t *testing.T) {
	t.Helper()
	before := fb.generations(t)
	fb.kubectl(t, "patch", "bgppeers.slb.k8s.ovn.org", "tor", "--type=merge", "-p",
		`{"spec":{"holdTime":"300s","keepaliveTime":"100s"}}`)
	await.True(t, "all objects edited", func() bool {
		edited := map[string]string{}
		for line := range strings.Lines(fb.kubectl(t, "-n", site.Namespace, "get", "frrconfigurations", "-l",
			frrapi.LabelPeer, "-o", `jsonpath={range .items[*]}{.metadata.name} `+
				`{.spec.bgp.routers[*].neighbors[*].holdTime}{"\n"}{end}`)) {
			name, holdTime, _ := strings.Cut(strings.TrimSpace(line), " ")
			edited[name] = holdTime
		}
		for name := range before {
			if edited[name] != "5m0s" {
				return false
			}
		}
		return len(edited) == len(before)
	})
	fb.awaitHops(t, moving, fb.Nodes[1].Addr.String())
}

// withoutControllers kills the controllers of frr-k8s; ours does not run either. Routes and sessions stay.
func (fb *fabric) withoutControllers(t *testing.T) {
	t.Helper()
	before := fb.connections(t, fb.Nodes[1])
	for _, n := range fb.Nodes {
		if err := n.KillController(); err != nil {
			t.Fatal(err)
		}
	}
	// The router asks for all routes once more.
	vtysh(t, fb.Router, "clear bgp ipv4 unicast * in")
	fb.awaitHops(t, moving, fb.Nodes[1].Addr.String())
	if is := fb.connections(t, fb.Nodes[1]); is != before {
		t.Errorf("the router's session was reset: %+v, %+v before", is, before)
	}
	for _, n := range fb.Nodes {
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitHops waits until the router's kernel has a route by exactly these nodes.
func (fb *fabric) awaitHops(t *testing.T, prefix string, nodes ...string) {
	t.Helper()
	await.True(t, fmt.Sprintf("a route to %s by %v", prefix, nodes), func() bool {
		return slices.Equal(fb.hops(t, prefix), nodes)
	})
}
