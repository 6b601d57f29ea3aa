// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// maxPasswordLength is the maximum length of a TCP MD5 password in bytes (TCP_MD5SIG_MAXKEYLEN in tcp(7)).
	maxPasswordLength = 80
)

// RelatedObjects are the objects that peers and advertisements refer to and select.
type RelatedObjects struct {
	Nodes    []*corev1.Node
	Pools    []*v1alpha1.IPAddressPool
	Peers    map[string]*v1alpha1.BGPPeer
	Profiles map[string]*v1alpha1.BFDProfile
	Aliases  Aliases
	// Secrets are the Secrets in v1alpha1.PasswordsNamespace.
	Secrets map[string]*corev1.Secret
	// FRR is what frr-k8s has; nil if it is not used, or not needed as on nodes.
	FRR *world.FRR
}

// Peer converts a BGPPeer. If its password is missing, there is no session. If its BFD profile is missing, the session
// has no BFD.
func Peer(p *v1alpha1.BGPPeer, related RelatedObjects) *world.Peer {
	spec := &p.Spec
	out := &world.Peer{
		Name:            p.Name,
		Created:         p.CreationTimestamp.Time,
		Nodes:           chosenNodes(spec.NodeSelectors, related.Nodes),
		MyASN:           uint32(spec.MyASN),
		LocalASN:        uint32(spec.LocalASN),
		PeerASN:         uint32(spec.PeerASN),
		Internal:        spec.DynamicASN == v1alpha1.DynamicASNInternal,
		Interface:       spec.Interface,
		Port:            uint16(cmp.Or(spec.PeerPort, v1alpha1.DefaultPeerPort)),
		Hold:            v1alpha1.DefaultHoldTime,
		Connect:         v1alpha1.DefaultConnectTime,
		Password:        spec.Password,
		TTL:             uint8(spec.MultihopTTL),
		SecurityHops:    uint8(spec.TTLSecurityHops),
		GracefulRestart: spec.EnableGracefulRestart,
		DualStack:       spec.DualStackAddressFamily,
		BFDName:         spec.BFDProfile,
		FRRK8s:          spec.Backend == v1alpha1.BackendFRRK8s,
	}
	for _, problem := range problems(p.Validate()) {
		out.Findings = append(out.Findings, world.Finding{Reason: v1alpha1.ReasonInvalid, Message: problem, Fatal: true})
	}
	// Invalid values have been added to the findings above.
	out.Addr, _ = spec.PeerAddress.Parse()
	out.Source, _ = spec.SourceAddress.Parse()
	out.RouterID, _ = spec.RouterID.Parse()
	if out.TTL == 0 && spec.EBGPMultiHop {
		out.TTL = v1alpha1.DefaultMultihopTTL
	}
	if spec.HoldTime != nil {
		out.Hold = spec.HoldTime.Duration
	}
	out.Keepalive = (out.Hold / v1alpha1.KeepalivesPerHoldTime).Truncate(time.Second)
	if spec.KeepaliveTime != nil {
		out.Keepalive = spec.KeepaliveTime.Duration
	}
	if spec.ConnectTime != nil {
		out.Connect = spec.ConnectTime.Duration
	}
	if r := spec.PasswordSecret; r != nil && out.FRRK8s {
		out.PasswordSecret = r.Name
		if f := related.FRR; f.Available() && f.Passwords[r.Name] == "" {
			out.Findings = append(out.Findings, world.Finding{Reason: v1alpha1.ReasonSecretNotFound, Fatal: true,
				Message: fmt.Sprintf("spec.passwordSecret: Secret %s/%s does not exist, is not of type %s or has no key password "+
					"(with backend FRRK8s, in the namespace of frr-k8s)", f.Namespace, r.Name, corev1.SecretTypeBasicAuth)})
		}
	} else if r != nil {
		password, problem := password(related.Secrets[r.Name])
		if out.Password = password; problem != "" {
			out.Findings = append(out.Findings, world.Finding{Reason: v1alpha1.ReasonSecretNotFound, Fatal: true,
				Message: fmt.Sprintf("spec.passwordSecret: Secret %s/%s %s", v1alpha1.PasswordsNamespace, r.Name, problem)})
		}
	}
	if spec.BFDProfile != "" {
		if out.BFD = profile(related.Profiles[spec.BFDProfile]); out.BFD == nil {
			out.Findings = append(out.Findings, world.Finding{Reason: v1alpha1.ReasonProfileNotFound,
				Message: fmt.Sprintf("spec.bfdProfile: BFDProfile %q does not exist, so BFD does not watch the peer",
					spec.BFDProfile)})
		}
	}
	if len(out.Nodes) == 0 {
		out.Findings = append(out.Findings, noNodes())
	}
	return out
}

func noNodes() world.Finding {
	return world.Finding{Reason: v1alpha1.ReasonNoNodes, Message: "spec.nodeSelectors: no node matches", Fatal: true}
}

// password returns the password in a Secret, or the problem with the Secret.
func password(s *corev1.Secret) (value, problem string) {
	switch {
	case s == nil:
		return "", "does not exist"
	case s.Type != corev1.SecretTypeBasicAuth:
		return "", fmt.Sprintf("is of type %s, not %s", s.Type, corev1.SecretTypeBasicAuth)
	}
	text := string(s.Data[corev1.BasicAuthPasswordKey])
	switch {
	case text == "":
		return "", "has no key password"
	case len(text) > maxPasswordLength:
		return "", fmt.Sprintf("has a password of %d bytes, more than %d", len(text), maxPasswordLength)
	}
	return text, ""
}

// profile converts a BFDProfile. The defaults of the CRD may not have been applied to it.
func profile(p *v1alpha1.BFDProfile) *world.BFDProfile {
	if p == nil {
		return nil
	}
	return &world.BFDProfile{
		Receive:    time.Duration(cmp.Or(p.Spec.ReceiveInterval, v1alpha1.DefaultBFDInterval)) * time.Millisecond,
		Transmit:   time.Duration(cmp.Or(p.Spec.TransmitInterval, v1alpha1.DefaultBFDInterval)) * time.Millisecond,
		Multiplier: uint8(cmp.Or(p.Spec.DetectMultiplier, v1alpha1.DefaultDetectMultiplier)),
		Passive:    p.Spec.PassiveMode,
		MinimumTTL: uint8(cmp.Or(p.Spec.MinimumTTL, v1alpha1.DefaultMinimumTTL)),
	}
}

// Advertisement converts a BGPAdvertisement. It has no effect if one of its communities is missing: that community may
// restrict where routes are propagated.
func Advertisement(a *v1alpha1.BGPAdvertisement, related RelatedObjects) *world.Advertisement {
	spec := &a.Spec
	out := &world.Advertisement{
		Name:      a.Name,
		Created:   a.CreationTimestamp.Time,
		Nodes:     chosenNodes(spec.NodeSelectors, related.Nodes),
		Pools:     chosenPools(spec.IPAddressPools, spec.IPAddressPoolSelectors, related.Pools),
		EveryPool: len(spec.IPAddressPools) == 0 && len(spec.IPAddressPoolSelectors) == 0,
		Peers:     spec.Peers,
		Length4:   v1alpha1.DefaultAggregationLength,
		Length6:   v1alpha1.DefaultAggregationLengthV6,
		ByGateway: spec.NextHop == v1alpha1.NextHopGateway,
		LocalPref: number(spec.LocalPref),
		MED:       number(spec.MED),
		Prepend:   uint8(spec.ASPathPrepend),
	}
	if spec.AggregationLength != nil {
		out.Length4 = int(*spec.AggregationLength)
	}
	if spec.AggregationLengthV6 != nil {
		out.Length6 = int(*spec.AggregationLengthV6)
	}
	out.Services = serviceSelectors(spec.ServiceSelectors)
	found := func(reason string, fatal bool, format string, args ...any) {
		out.Findings = append(out.Findings, world.Finding{Reason: reason, Message: fmt.Sprintf(format, args...),
			Fatal: fatal})
	}
	for _, problem := range problems(a.Validate()) {
		found(v1alpha1.ReasonInvalid, true, "%s", problem)
	}
	for _, ref := range spec.Communities {
		c, ok := related.Aliases.community(string(ref))
		switch {
		case !ok:
			found(v1alpha1.ReasonCommunityNotFound, true, "spec.communities: no Community defines %q", ref)
		case c.large:
			out.LargeCommunities = append(out.LargeCommunities, c.values)
		default:
			out.Communities = append(out.Communities, c.values[0])
		}
	}
	missing := slices.DeleteFunc(slices.Clone(spec.IPAddressPools), func(name string) bool {
		return slices.ContainsFunc(related.Pools, func(p *v1alpha1.IPAddressPool) bool { return p.Name == name })
	})
	if len(missing) > 0 {
		found(v1alpha1.ReasonPoolNotFound, len(missing) == len(out.Pools), "spec.ipAddressPools: %s: no such pool",
			strings.Join(missing, ", "))
	} else if len(out.Pools) == 0 && !out.EveryPool {
		found(v1alpha1.ReasonPoolNotFound, true, "spec.ipAddressPoolSelectors: no pool matches")
	}
	missing = slices.DeleteFunc(slices.Clone(spec.Peers), func(name string) bool { return related.Peers[name] != nil })
	if len(missing) > 0 {
		found(v1alpha1.ReasonPeerNotFound, len(missing) == len(spec.Peers), "spec.peers: %s: no such BGPPeer",
			strings.Join(missing, ", "))
	}
	if len(out.Nodes) == 0 {
		out.Findings = append(out.Findings, noNodes())
	}
	return out
}

func number(n *int64) *uint32 {
	if n == nil {
		return nil
	}
	out := uint32(*n)
	return &out
}

// SessionError returns what messages contain of the last error of a session, which a node writes.
func SessionError(lastError string) string { return Bounded(lastError) }

// Sessions converts the sessions that a node reports, by peer; nil if there are none. What routers keep by graceful
// restart after the daemon was stopped counts as Established.
func Sessions(s *v1alpha1.BGPNodeStatus, now time.Time) map[string]world.PeerSession {
	if s == nil || len(s.Status.Sessions) == 0 {
		return nil
	}
	gone := s.Status.StopTime != nil && !now.Before(s.Status.StopTime.Add(world.GracefulRestartTime))
	unread := ""
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); c != nil &&
		c.Reason == v1alpha1.ReasonNotRead {
		unread = Bounded(c.Message)
	}
	sessions := make(map[string]world.PeerSession, len(s.Status.Sessions))
	for _, session := range s.Status.Sessions {
		is := world.PeerSession{
			Established: session.State == v1alpha1.BGPEstablished, Outdated: session.Outdated,
			BFDProblem: Bounded(session.BFDError), PeerASN: uint32(session.PeerASN),
		}
		if gone && is.Established {
			is.Established, is.Problem = false, "the BGP daemon was stopped"
		} else if !is.Established {
			is.Problem = cmp.Or(SessionError(session.LastError), "the session is "+string(session.State))
			is.Reason = session.LastErrorReason
		} else if session.Families != nil {
			is.WithoutIPv4 = !slices.Contains(session.Families, world.IPv4.String())
			is.WithoutIPv6 = !slices.Contains(session.Families, world.IPv6.String())
		}
		if is.Established {
			is.Unread = unread
		}
		sessions[session.Peer] = is
	}
	return sessions
}
