// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// convertPeers converts BGPPeers.
func (c *conversion) convertPeers() {
	for _, p := range c.source.peers {
		ref, in, valid := p.String(), &p.spec, !p.incomplete
		if in.VRF != "" {
			valid = false
			c.add(Error, ref, "spec.vrf", "%s: sessions are in the default VRF of the node only, where OVN-Kubernetes takes "+
				"the traffic of Services", in.VRF)
		}
		out := &v1alpha1.BGPPeer{TypeMeta: typeMeta(kindPeer), ObjectMeta: meta(p, nil)}
		out.Spec = v1alpha1.BGPPeerSpec{
			MyASN: in.MyASN, PeerASN: in.PeerASN, LocalASN: in.LocalASN, DynamicASN: v1alpha1.DynamicASN(in.DynamicASN),
			PeerAddress: v1alpha1.IPAddress(in.PeerAddress), Interface: in.Interface,
			SourceAddress: v1alpha1.IPAddress(in.SourceAddress), PeerPort: in.PeerPort,
			RouterID: v1alpha1.IPAddress(in.RouterID), NodeSelectors: c.peerNodes(in.NodeSelectors),
			Password: in.Password, EnableGracefulRestart: in.EnableGracefulRestart,
			DualStackAddressFamily: in.DualStackAddressFamily, DisableMP: in.DisableMP && !in.DualStackAddressFamily,
		}
		if in.BFDProfile != "" {
			profiles, _ := c.references(ref, "spec.bfdProfile", kindBFDProfile, []string{in.BFDProfile})
			out.Spec.BFDProfile = strings.Join(profiles, "")
		}
		c.convertTimers(p, &out.Spec)
		if c.frrK8s {
			c.keepSession(p, &out.Spec)
		}
		c.convertSecret(p, &out.Spec)
		c.convertHops(p, &out.Spec)
		c.checkPeer(p)
		if accepted := c.accept(ref, out); !accepted || !valid {
			c.add(Error, ref, "", "is left out: no node has a session with this router")
			continue
		}
		c.warnOfDuplicates(ref, out)
		c.objects = append(c.objects, out)
	}
}

// peerNodes limits node selectors to the nodes with speakers and to those that are migrated.
func (c *conversion) peerNodes(selectors []metav1.LabelSelector) []metav1.LabelSelector {
	selectors = intersectSelectors(selectors, c.speakerNodes)
	if len(c.input.PeerNodes) == 0 {
		return selectors
	}
	return intersectSelectors(selectors, []metav1.LabelSelector{{MatchLabels: c.input.PeerNodes}})
}

// convertTimers converts the timers of a session. MetalLB derives an absent one from the other, and requires only that
// keepaliveTime is not longer than holdTime.
func (c *conversion) convertTimers(p *peer, out *v1alpha1.BGPPeerSpec) {
	seconds := func(field string, d *metav1.Duration) *metav1.Duration {
		if d == nil {
			return nil
		}
		whole := d.Truncate(time.Second)
		if whole != d.Duration {
			c.add(Note, p.String(), "spec."+field, "%s is not a number of seconds: it is written as %s", d.Duration, whole)
		}
		return &metav1.Duration{Duration: whole}
	}
	hold, keepalive := seconds("holdTime", p.spec.HoldTime), seconds("keepaliveTime", p.spec.KeepaliveTime)
	out.ConnectTime = seconds("connectTime", p.spec.ConnectTime)
	if keepalive != nil && keepalive.Duration == 0 {
		keepalive = nil // unset in v1beta1
	}
	switch {
	case hold == nil && keepalive != nil:
		hold = &metav1.Duration{Duration: v1alpha1.KeepalivesPerHoldTime * keepalive.Duration}
	case hold != nil && hold.Duration == 0:
		keepalive = nil
		c.add(Warning, p.String(), "spec.holdTime", "0s: the session has no hold timer, so that without BFD the loss of the "+
			"peer is not detected. A BGPPeer of v1beta1 without holdTime looks the same. Remove the field for 90s")
	case hold != nil && keepalive != nil && v1alpha1.KeepalivesPerHoldTime*keepalive.Duration > hold.Duration:
		third := (hold.Duration / v1alpha1.KeepalivesPerHoldTime).Truncate(time.Second)
		c.add(Note, p.String(), "spec.keepaliveTime", "%s is more than a third of holdTime %s: it is written as %s",
			keepalive.Duration, hold.Duration, third)
		keepalive = &metav1.Duration{Duration: third}
	}
	out.HoldTime, out.KeepaliveTime = hold, keepalive
}

// convertSecret converts the reference to a Secret, which must be in another namespace.
func (c *conversion) convertSecret(p *peer, out *v1alpha1.BGPPeerSpec) {
	if p.spec.Password != "" {
		c.add(Note, p.String(), "spec.password", "is copied as it is. Everyone who may read BGPPeers can read it: prefer "+
			"passwordSecret")
	}
	name := p.spec.PasswordSecret.Name
	if name == "" {
		return
	}
	if c.frrK8s {
		out.PasswordSecret = &v1alpha1.PasswordReference{Name: name}
		c.add(Warning, p.String(), "spec.passwordSecret", "Secret %s (type kubernetes.io/basic-auth) must be in the "+
			"namespace of frr-k8s, the only one whose Secrets it reads: copy it if it is not there", name)
		return
	}
	out.PasswordSecret = &v1alpha1.PasswordReference{Name: name, Namespace: v1alpha1.PasswordsNamespace}
	c.add(Warning, p.String(), "spec.passwordSecret", "copy Secret %s (type kubernetes.io/basic-auth) from MetalLB's "+
		"namespace to %s, the only namespace whose Secrets are read", name, v1alpha1.PasswordsNamespace)
}

// convertHops converts ebgpMultiHop. MetalLB's native mode ignores it, and opens sessions to peers any number of hops
// away.
func (c *conversion) convertHops(p *peer, out *v1alpha1.BGPPeerSpec) {
	in, field := &p.spec, "spec.ebgpMultiHop"
	switch {
	case in.EBGPMultiHop && in.internal():
		c.add(Note, p.String(), field, "true has no effect for an internal peer: it is removed")
	case in.EBGPMultiHop && in.Interface != "":
		c.add(Note, p.String(), field, "true has no effect with interface %s: it is removed", in.Interface)
	case in.EBGPMultiHop:
		out.EBGPMultiHop = true
	case in.internal() || in.Interface != "" || c.frrK8s:
	case len(c.input.NodeNetworks) == 0:
		c.add(Warning, p.String(), field, "false: set it to true if peerAddress %s is not on a network of the nodes. "+
			"MetalLB's native mode ignores this field; here the session is not established without it", in.PeerAddress)
	case c.offLink(in.PeerAddress):
		out.EBGPMultiHop = true
		c.add(Warning, p.String(), field, "is set to true: peerAddress %s is on no network of a node. MetalLB's native mode "+
			"ignores this field; here the session is not established without it", in.PeerAddress)
	}
}

// offLink reports whether an address is on none of the networks of the nodes.
func (c *conversion) offLink(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && !slices.ContainsFunc(c.input.NodeNetworks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// checkPeer adds findings about fields that are converted as they are.
func (c *conversion) checkPeer(p *peer) {
	in := &p.spec
	if in.DisableMP && in.DualStackAddressFamily {
		c.add(Note, p.String(), "spec.disableMP", "true contradicts dualStackAddressFamily: true, and is removed")
	}
	holders := c.severalNodes(in.NodeSelectors)
	if holders == "" {
		return
	}
	for _, f := range []struct{ field, value string }{{"routerID", in.RouterID}, {"sourceAddress", in.SourceAddress}} {
		if f.value != "" && (!c.frrK8s || f.field != "sourceAddress") {
			c.add(Warning, p.String(), "spec."+f.field, "%s belongs to one node, but %s have the session: let "+
				"nodeSelectors select it alone, or remove the field", f.value, holders)
		}
	}
}

// severalNodes names the nodes that node selectors of a peer select, if there are more than one.
func (c *conversion) severalNodes(selectors []metav1.LabelSelector) string {
	if len(selectors) == 0 {
		return "all nodes"
	}
	n := 0
	names := c.nodesWith(func(node *corev1.Node) bool {
		has := c.selected(node) && selectsNode(selectors, node)
		if has {
			n++
		}
		return has
	})
	if n < 2 {
		return ""
	}
	return world.Count(n, "node") + " (" + strings.TrimPrefix(names, ": ") + ")"
}

// convertAdvertisements converts BGPAdvertisements. aliases are the names of communities, by MetalLB's names.
func (c *conversion) convertAdvertisements(aliases map[string]string) {
	var left []*bgpAdvertisement
	for _, a := range c.source.advertisements {
		ref, in := a.String(), &a.spec
		out := &v1alpha1.BGPAdvertisement{TypeMeta: typeMeta(kindBGPAdvertisement), ObjectMeta: meta(a, nil)}
		pools, selective := c.references(ref, "spec.ipAddressPools", kindPool, in.IPAddressPools)
		peers, limited := c.references(ref, "spec.peers", kindPeer, in.Peers)
		out.Spec = v1alpha1.BGPAdvertisementSpec{
			AggregationLength: in.AggregationLength, AggregationLengthV6: in.AggregationLengthV6,
			IPAddressPools: pools, IPAddressPoolSelectors: in.IPAddressPoolSelectors,
			NodeSelectors: in.NodeSelectors, Peers: peers, ServiceSelectors: in.ServiceSelectors,
		}
		valid := c.convertAttributes(a, &out.Spec, aliases)
		if !selective && len(in.IPAddressPoolSelectors) == 0 {
			c.add(Error, ref, "spec.ipAddressPools", "no pool of the list is converted: %s. Without a list it would advertise "+
				"all pools", strings.Join(unique(in.IPAddressPools), ", "))
			valid = false
		}
		if !limited {
			c.add(Error, ref, "spec.peers", "no peer of the list is converted: %s. Without a list it would advertise to all "+
				"peers", strings.Join(unique(in.Peers), ", "))
			valid = false
		}
		if c.accept(ref, out) && valid && !a.incomplete {
			c.objects = append(c.objects, out)
		} else {
			left = append(left, a)
		}
	}
	for _, a := range left { // Only now it is known which others are converted.
		c.add(Error, a.String(), "", "is left out: %s", c.lostRoutes(a))
	}
}

// lostRoutes returns what it means that an advertisement is left out, and what to do.
func (c *conversion) lostRoutes(a *bgpAdvertisement) string {
	var lost, others []string
	for _, p := range c.allPools() {
		switch {
		case !selects(a.spec.IPAddressPools, a.spec.IPAddressPoolSelectors, p):
		case c.isRouted(p):
			others = append(others, p.Name)
		default:
			lost = append(lost, p.Name)
		}
	}
	const (
		most = 10
		mend = "Correct the errors about it above, or write a BGPAdvertisement for the same pools"
	)
	switch {
	case len(lost) > 0:
		return fmt.Sprintf("routers get no routes to addresses of these IPAddressPools, which no other BGPAdvertisement "+
			"selects: %s. %s", world.Some(lost, most), mend)
	case len(others) > 0:
		return fmt.Sprintf("other BGPAdvertisements select its IPAddressPools (%s), and decide alone which nodes and peers "+
			"have the routes, and with which attributes. %s", world.Some(others, most), mend)
	}
	return "it selects no IPAddressPool that is converted or in the cluster"
}

// convertAttributes converts the lengths of prefixes and the attributes of routes.
func (c *conversion) convertAttributes(a *bgpAdvertisement, out *v1alpha1.BGPAdvertisementSpec,
	aliases map[string]string) bool {
	in, valid := &a.spec, true
	for _, l := range []struct {
		field  string
		length *int32
		bits   int32
	}{{"aggregationLength", in.AggregationLength, 32}, {"aggregationLengthV6", in.AggregationLengthV6, 128}} {
		switch {
		case l.length == nil || *l.length == l.bits:
		case *l.length < 1 || *l.length > l.bits:
			c.add(Error, a.String(), "spec."+l.field, "%d is not between 1 and %d", *l.length, l.bits)
			valid = false
		case len(in.ServiceSelectors) > 0:
			c.add(Error, a.String(), "spec."+l.field, "%d excludes serviceSelectors: the prefix has addresses of other "+
				"Services, too. Remove one of the two", *l.length)
			valid = false
		}
	}
	switch {
	case in.LocalPref < 0 || in.LocalPref > 1<<32-1:
		c.add(Error, a.String(), "spec.localPref", "%d is not between 0 and 4294967295", in.LocalPref)
		valid = false
	case in.LocalPref != 0:
		out.LocalPref = &in.LocalPref
	case !c.frrK8s && slices.ContainsFunc(c.source.peers, func(p *peer) bool { return p.spec.internal() }):
		c.add(Note, a.String(), "spec.localPref", "is unset: 100 is sent to internal peers. MetalLB's native mode sends 0")
	}
	for _, name := range in.Communities {
		alias, isAlias := aliases[name]
		switch {
		case isAlias:
		case strings.Contains(name, ":"):
			var ok bool
			alias, ok = c.community(a.String(), "spec.communities", name)
			valid = ok && valid
		default:
			c.add(Error, a.String(), "spec.communities", "%s is defined by no Community", name)
			valid = false
		}
		if ref := v1alpha1.CommunityRef(alias); alias != "" && !slices.Contains(out.Communities, ref) {
			out.Communities = append(out.Communities, ref)
		}
	}
	return valid
}

// unique returns the names of a list without duplicates, in their order.
func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// convertProfiles converts BFDProfiles.
func (c *conversion) convertProfiles() {
	for _, p := range c.source.profiles {
		ref, in := p.String(), &p.spec
		out := &v1alpha1.BFDProfile{TypeMeta: typeMeta(kindBFDProfile), ObjectMeta: meta(p, nil)}
		valid := true
		for _, n := range []struct {
			field    string
			from     *int32
			to       *int32
			min, max int32
		}{
			{"receiveInterval", in.ReceiveInterval, &out.Spec.ReceiveInterval, 10, 60000},
			{"transmitInterval", in.TransmitInterval, &out.Spec.TransmitInterval, 10, 60000},
			{"detectMultiplier", in.DetectMultiplier, &out.Spec.DetectMultiplier, 2, 255},
			{"minimumTtl", in.MinimumTTL, &out.Spec.MinimumTTL, 1, 254},
		} {
			if n.from == nil {
				continue
			}
			if *n.from < n.min || *n.from > n.max {
				c.add(Error, ref, "spec."+n.field, "%d is not between %d and %d", *n.from, n.min, n.max)
				valid = false
			}
			*n.to = *n.from
		}
		out.Spec.PassiveMode = in.PassiveMode != nil && *in.PassiveMode
		if in.EchoMode != nil && *in.EchoMode {
			c.add(Warning, ref, "spec.echoMode", "true has no equivalent and is removed: BFD runs in asynchronous mode, and a "+
				"failure is detected after %s", detection(out.Spec))
		}
		if in.EchoInterval != nil && (in.EchoMode == nil || !*in.EchoMode) {
			c.add(Note, ref, "spec.echoInterval", "%d has no effect without echoMode, and is removed", *in.EchoInterval)
		}
		if c.accept(ref, out) && valid && !p.incomplete {
			c.objects = append(c.objects, out)
		}
	}
}

// detection returns the time in which a profile detects a failure, if the peer has the same timers.
func detection(s v1alpha1.BFDProfileSpec) string {
	interval, multiplier := max(s.ReceiveInterval, s.TransmitInterval), s.DetectMultiplier
	if s.ReceiveInterval == 0 || s.TransmitInterval == 0 {
		interval = max(interval, v1alpha1.DefaultBFDInterval)
	}
	if multiplier == 0 {
		multiplier = v1alpha1.DefaultDetectMultiplier
	}
	return fmt.Sprintf("%d x %d ms", multiplier, interval)
}
