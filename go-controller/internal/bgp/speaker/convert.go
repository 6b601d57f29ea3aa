// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// maxHold is the longest hold time that an OPEN message can contain (RFC 4271 section 4.2). It is the hold time
	// between gobgp and the connection, which manages the router's timers itself.
	maxHold = 65535 * time.Second
	// deferralTime is how long our routes wait for the End-of-RIB of a peer (RFC 4724 section 4.1). It is short because
	// we ignore the peer's routes.
	deferralTime = time.Second
	maxTTL       = 255
	// gracefulShutdown is a well-known community (RFC 8326 section 5).
	gracefulShutdown = 65535 << 16
)

// asn returns our AS number as the peer sees it.
func asn(n bgp.Neighbor) uint32 {
	if n.LocalASN != 0 {
		return n.LocalASN
	}
	return n.MyASN
}

// peerASN returns the AS number that the peer must have, 0 if several are accepted.
func peerASN(n bgp.Neighbor) uint32 {
	if n.PeerASN == 0 && n.Dynamic == bgp.InternalASN {
		return asn(n)
	}
	return n.PeerASN
}

func internal(n bgp.Neighbor) bool { return peerASN(n) == asn(n) }

// global returns the configuration with which a server is started.
func global(n bgp.Neighbor) *api.Global {
	return &api.Global{Asn: asn(n), RouterId: n.RouterID.String(), ListenPort: -1}
}

// importPolicy returns the import policy. gobgp also applies it to our own routes, and it accepts only these.
func importPolicy() (*api.Policy, *api.PolicyAssignment) {
	policy := &api.Policy{Name: "ours", Statements: []*api.Statement{{
		Name:       "ours",
		Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL},
		Actions:    &api.Actions{RouteAction: api.RouteAction_ACCEPT},
	}}}
	return policy, &api.PolicyAssignment{
		Name: "global", Direction: api.PolicyDirection_IMPORT, Policies: []*api.Policy{policy},
		DefaultAction: api.RouteAction_REJECT,
	}
}

// neighbor returns the only peer of a server: the listener of the connection, in place of the router.
func neighbor(n bgp.Neighbor, listenPort uint16) *api.Peer {
	p := &api.Peer{
		Conf: &api.PeerConf{NeighborAddress: loopback().String(), PeerAsn: peerASN(n)},
		Timers: &api.Timers{Config: &api.TimersConfig{HoldTime: seconds(maxHold),
			KeepaliveInterval: seconds(maxHold / keepalives), ConnectRetry: 1}},
		Transport: &api.Transport{RemotePort: uint32(listenPort)},
	}
	if n.GracefulRestart {
		p.GracefulRestart = &api.GracefulRestart{
			Enabled: true, RestartTime: seconds32(world.GracefulRestartTime), DeferralTime: seconds32(deferralTime),
			LocalRestarting: true,
		}
	}
	for _, f := range families(n) {
		p.AfiSafis = append(p.AfiSafis, &api.AfiSafi{
			Config:            &api.AfiSafiConfig{Family: f, Enabled: true},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: n.GracefulRestart}},
		})
	}
	return p
}

func seconds(d time.Duration) uint64   { return uint64(d / time.Second) }
func seconds32(d time.Duration) uint32 { return uint32(d / time.Second) }

func families(n bgp.Neighbor) []*api.Family {
	var all []*api.Family
	if n.IPv4 {
		all = append(all, family(netip.IPv4Unspecified()))
	}
	if n.IPv6 {
		all = append(all, family(netip.IPv6Unspecified()))
	}
	return all
}

func family(a netip.Addr) *api.Family {
	f := &api.Family{Afi: api.Family_AFI_IP6, Safi: api.Family_SAFI_UNICAST}
	if a.Is4() {
		f.Afi = api.Family_AFI_IP
	}
	return f
}

// withdrawal returns the path that withdraws a prefix from a server.
func withdrawal(prefix netip.Prefix) (*api.Path, error) {
	if !prefix.IsValid() || prefix != prefix.Masked() {
		return nil, fmt.Errorf("prefix %s: want one without host bits", prefix)
	}
	nlri, err := anypb.New(&api.IPAddressPrefix{Prefix: prefix.Addr().String(), PrefixLen: uint32(prefix.Bits())})
	if err != nil {
		return nil, fmt.Errorf("prefix %s: %w", prefix, err)
	}
	return &api.Path{Family: family(prefix.Addr()), Nlri: nlri, IsWithdraw: true}, nil
}

// route returns the path that adds a prefix with its attributes to a server.
func route(n bgp.Neighbor, prefix netip.Prefix, a bgp.Attributes) (*api.Path, error) {
	path, err := withdrawal(prefix)
	if err != nil {
		return nil, err
	}
	path.IsWithdraw = false
	if !a.NextHop.IsValid() || a.NextHop.IsUnspecified() {
		return nil, fmt.Errorf("route to %s: no next hop", prefix)
	}
	if prefix.Addr().Is6() && a.NextHop.Is4() {
		return nil, fmt.Errorf("route to %s: next hop %s: want one of IPv6", prefix, a.NextHop)
	}
	for _, m := range attributes(n, path, a) {
		attribute, err := anypb.New(m)
		if err != nil {
			return nil, fmt.Errorf("route to %s: %w", prefix, err)
		}
		path.Pattrs = append(path.Pattrs, attribute)
	}
	return path, nil
}

func attributes(n bgp.Neighbor, path *api.Path, a bgp.Attributes) []proto.Message {
	all := []proto.Message{&api.OriginAttribute{}} // 0 is IGP (RFC 4271 section 5.1.1).
	hop := a.NextHop.WithZone("").String()
	if path.Family.Afi == api.Family_AFI_IP && a.NextHop.Is4() {
		all = append(all, &api.NextHopAttribute{NextHop: hop})
	} else { // RFC 4760, and RFC 8950 for an IPv6 next hop.
		all = append(all, &api.MpReachNLRIAttribute{Family: path.Family, NextHops: []string{hop},
			Nlris: []*anypb.Any{path.Nlri}})
	}
	if a.Prepend > 0 && !internal(n) { // An internal peer would take its own number for a loop.
		numbers := make([]uint32, a.Prepend)
		for i := range numbers {
			numbers[i] = asn(n)
		}
		all = append(all, &api.AsPathAttribute{Segments: []*api.AsSegment{{Type: api.AsSegment_AS_SEQUENCE,
			Numbers: numbers}}})
	}
	if a.MED != nil {
		all = append(all, &api.MultiExitDiscAttribute{Med: *a.MED})
	}
	if a.LocalPref != nil && internal(n) {
		all = append(all, &api.LocalPrefAttribute{LocalPref: *a.LocalPref})
	}
	if len(a.Communities) > 0 {
		all = append(all, &api.CommunitiesAttribute{Communities: a.Communities})
	}
	if len(a.LargeCommunities) > 0 {
		large := &api.LargeCommunitiesAttribute{}
		for _, c := range a.LargeCommunities {
			large.Communities = append(large.Communities, &api.LargeCommunity{GlobalAdmin: c.Global, LocalData1: c.Local1,
				LocalData2: c.Local2})
		}
		all = append(all, large)
	}
	return all
}
