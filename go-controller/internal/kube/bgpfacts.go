// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// bgpFacts are the objects of the BGP kinds, by name.
type bgpFacts struct {
	peers          map[string]*v1alpha1.BGPPeer
	advertisements map[string]*v1alpha1.BGPAdvertisement
	profiles       map[string]*v1alpha1.BFDProfile
	communities    map[string]*v1alpha1.Community
	secrets        map[string]*corev1.Secret
	// statuses are the reports of the nodes. sessions are the sessions in them.
	statuses map[string]*v1alpha1.BGPNodeStatus
	sessions map[string]map[string]world.PeerSession
	// recovered are the nodes that were considered silent and then reported. Their timers run for recoveryPeriod.
	recovered map[string]*time.Timer
	// stopped are the timers until which routers keep the routes of nodes whose daemon was stopped.
	stopped map[string]*time.Timer
	// read is the conversion of the objects; nil after a change. frrState is what was known of frr-k8s then.
	read     *bgpRead
	frrState string
}

type bgpRead struct {
	peers          []*world.Peer
	advertisements []*world.Advertisement
	communities    map[string][]world.Finding
}

func newBGPFacts() bgpFacts {
	return bgpFacts{
		peers:          map[string]*v1alpha1.BGPPeer{},
		advertisements: map[string]*v1alpha1.BGPAdvertisement{},
		profiles:       map[string]*v1alpha1.BFDProfile{},
		communities:    map[string]*v1alpha1.Community{},
		secrets:        map[string]*corev1.Secret{},
		statuses:       map[string]*v1alpha1.BGPNodeStatus{},
		sessions:       map[string]map[string]world.PeerSession{},
		recovered:      map[string]*time.Timer{},
		stopped:        map[string]*time.Timer{},
	}
}

// storeHandler returns a handler that stores objects. A version that differs only in its status does not wake the
// controller.
func storeHandler[T object](f *Facts, objects map[string]T) func(old, now T) {
	return func(old, now T) {
		var none T
		came, went := any(old) == any(none), any(now) == any(none)
		f.mu.Lock()
		if went {
			delete(objects, old.GetName())
		} else {
			objects[now.GetName()] = now
		}
		relevant := came || went || old.GetUID() != now.GetUID() || old.GetGeneration() != now.GetGeneration()
		if relevant {
			f.invalidate()
		}
		f.mu.Unlock()
		if relevant {
			f.hooks.Wake()
		}
	}
}

// setSecret stores a Secret. It compares type and data because Secrets have no generation.
func (f *Facts) setSecret(old, now *corev1.Secret) {
	if old != nil && now != nil && old.Type == now.Type && maps.EqualFunc(old.Data, now.Data, slices.Equal) {
		return
	}
	f.mu.Lock()
	delete(f.bgp.secrets, cmp.Or(now, old).Name)
	if now != nil {
		f.bgp.secrets[now.Name] = now
	}
	f.invalidate()
	f.mu.Unlock()
	f.hooks.Wake()
}

// setStatus stores the report of a node. Changed counters do not wake the controller.
func (f *Facts) setStatus(old, now *v1alpha1.BGPNodeStatus) {
	name := cmp.Or(now, old).Name
	f.mu.Lock()
	relevant := old == nil || now == nil
	if expired(old) && now != nil && !expired(now) {
		f.markRecovered(name)
		relevant = true
	}
	delete(f.bgp.statuses, name)
	if now != nil {
		f.bgp.statuses[name] = now
	}
	relevant = f.setSessions(name) || relevant
	f.changes.others = f.changes.others || relevant
	f.awaitStop(name, now)
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

// awaitStop starts the timer of a node whose daemon was stopped, and stops the one before. The caller holds mu.
func (f *Facts) awaitStop(name string, s *v1alpha1.BGPNodeStatus) {
	if t := f.bgp.stopped[name]; t != nil {
		t.Stop()
		delete(f.bgp.stopped, name)
	}
	if s == nil || s.Status.StopTime == nil {
		return
	}
	f.bgp.stopped[name] = time.AfterFunc(time.Until(s.Status.StopTime.Add(world.GracefulRestartTime)), func() {
		f.mu.Lock()
		relevant := f.setSessions(name)
		f.mu.Unlock()
		if relevant {
			f.hooks.Wake()
		}
	})
}

// setSessions converts the report of a node, and reports whether its sessions have changed. The caller holds mu.
func (f *Facts) setSessions(name string) bool {
	is, was := convert.Sessions(f.bgp.statuses[name], time.Now()), f.bgp.sessions[name]
	delete(f.bgp.sessions, name)
	if len(is) > 0 {
		f.bgp.sessions[name] = is
	}
	changed := !maps.Equal(was, is)
	f.changes.others = f.changes.others || changed
	return changed
}

// addBGP adds the BGP objects to a snapshot.
func (f *Facts) addBGP(w *world.Snapshot) {
	w.FRR = f.readFRR()
	if f.bgp.read == nil {
		f.bgp.read = f.readBGP(w.FRR)
	}
	w.Peers, w.Advertisements, w.Communities = f.bgp.read.peers, f.bgp.read.advertisements, f.bgp.read.communities
	w.Profiles = slices.Collect(maps.Keys(f.bgp.profiles))
	w.Sessions = make(map[string]map[string]world.PeerSession, len(f.bgp.sessions))
	for name, sessions := range f.bgp.sessions {
		if why := f.expireReports(name); why != "" {
			sessions = unknown(sessions, why)
		}
		w.Sessions[name] = sessions
	}
	w.AddFRRSessions()
}

// recoveryPeriod is how long a report is valid that a node sent although it was considered silent. Such a report shows
// that the daemon works and that only the kubelet or the guard does not. After this time the condition marks the report
// as expired again, which makes the daemon send a new one.
const recoveryPeriod = 15 * time.Minute

// markRecovered records that a node reported although it was considered silent. The caller holds mu.
func (f *Facts) markRecovered(name string) {
	if t := f.bgp.recovered[name]; t != nil {
		t.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(recoveryPeriod, func() {
		f.mu.Lock()
		relevant := f.bgp.recovered[name] == t
		if relevant {
			delete(f.bgp.recovered, name)
			f.changes.others = true
		}
		f.mu.Unlock()
		if relevant {
			f.hooks.Wake()
		}
	})
	f.bgp.recovered[name] = t
}

// expireReports returns why the last report of a node is no longer valid, or an empty string if it is valid. The caller
// holds mu.
func (f *Facts) expireReports(name string) string {
	n := f.nodes[name]
	switch {
	case n == nil || f.bgp.recovered[name] != nil: // The report is deleted with its Node.
		return ""
	case n.world.Unreachable:
		return "the node's kubelet no longer reports, so the node's last report has expired"
	case f.expiredLeases[name]:
		return "the Lease of the node's daemon has expired, and with it the node's last report"
	case expired(f.bgp.statuses[name]):
		return "the node's last report has expired, and there is no newer one"
	}
	return ""
}

// expired reports whether the controller marked a report as expired.
func expired(s *v1alpha1.BGPNodeStatus) bool {
	return s != nil && meta.IsStatusConditionPresentAndEqual(s.Status.Conditions, v1alpha1.ConditionReady,
		metav1.ConditionUnknown)
}

func unknown(sessions map[string]world.PeerSession, why string) map[string]world.PeerSession {
	out := make(map[string]world.PeerSession, len(sessions))
	for peer := range sessions {
		out[peer] = world.PeerSession{Unknown: true, Problem: why}
	}
	return out
}

func (f *Facts) readBGP(frr *world.FRR) *bgpRead {
	related := convert.RelatedObjects{Peers: f.bgp.peers, Profiles: f.bgp.profiles, Secrets: f.bgp.secrets,
		FRR: frr}
	related.Pools, related.Nodes = f.objects()
	read := &bgpRead{}
	related.Aliases, read.communities = convert.ReadAliases(slices.Collect(maps.Values(f.bgp.communities)))
	for _, p := range f.bgp.peers {
		read.peers = append(read.peers, convert.Peer(p, related))
	}
	for _, a := range f.bgp.advertisements {
		read.advertisements = append(read.advertisements, convert.Advertisement(a, related))
	}
	return read
}

// NodeStatus returns the newest object; false if there is none.
func (f *Facts) NodeStatus(node string) (*v1alpha1.BGPNodeStatus, bool) {
	return newest(f, f.bgp.statuses, node)
}

// Node returns the newest object; false if there is none.
func (f *Facts) Node(name string) (*corev1.Node, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[name]; n != nil {
		return n.object, true
	}
	return nil, false
}

func newest[T any](f *Facts, objects map[string]T, name string) (T, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := objects[name]
	return o, ok
}
