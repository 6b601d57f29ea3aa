// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// refusal waits for an error of a session and checks that the session does not come up.
func refusal(t *testing.T, n *node, peer, want string) {
	t.Helper()
	eventually(t, func(context.Context) error {
		state := n.state(peer)
		if !strings.Contains(state.LastError, want) {
			return fmt.Errorf("last error %q, want %q in it", state.LastError, want)
		}
		if state.Phase == speaker.Established || state.LastErrorTime.IsZero() {
			return fmt.Errorf("phase %s, error of %s", state.Phase, state.LastErrorTime)
		}
		if want := aboutOf(state.LastError); state.LastErrorReason != want {
			return fmt.Errorf("last error %q is about %q, want %q", state.LastError, state.LastErrorReason, want)
		}
		return nil
	})
}

// aboutOf returns what an error with a text of FRR or the kernel is about.
func aboutOf(text string) v1alpha1.BGPErrorReason {
	for _, known := range []struct {
		text  string
		about v1alpha1.BGPErrorReason
	}{
		{"as number mismatch", v1alpha1.BGPErrorWrongASN},
		{"the peer's AS number is", v1alpha1.BGPErrorWrongASN},
		{"bad peer as", v1alpha1.BGPErrorWrongASN},
		{"received notification", v1alpha1.BGPErrorNotification},
		{"is not on a link of this node", v1alpha1.BGPErrorNotOnLink},
		{"i/o timeout", v1alpha1.BGPErrorNoAnswer},
		{"no route to host", v1alpha1.BGPErrorUnreachable},
		{"network is unreachable", v1alpha1.BGPErrorUnreachable},
	} {
		if strings.Contains(text, known.text) {
			return known.about
		}
	}
	return ""
}

// says compares the state in FRR with the expectations of a field.
func (s *site) says(ctx context.Context, f field, c bgp.Session, host int, v6 bool) error {
	from := s.host(v6, host).Addr().String()
	replaced := func(want string, prefixV6 bool) string {
		return strings.NewReplacer(
			"HOST4", s.host(false, host).Addr().String(), "HOST6", s.host(true, host).Addr().String(), "HOST", from,
			"HOP", s.host(prefixV6, host).Addr().String(), "GATEWAY", s.host(prefixV6, 200).Addr().String(),
		).Replace(want)
	}
	state, err := s.neighborState(ctx, from)
	if err != nil {
		return err
	}
	if f.down && state["bgpState"] == "Established" {
		return fmt.Errorf("neighbor %s is Established", from)
	}
	if f.neighbor["TTL"] != "" {
		if state["TTL"], err = s.ttl(ctx, from); err != nil {
			return err
		}
	}
	for key, want := range f.neighbor {
		if got := lookup(state, key); got != replaced(want, v6) {
			return fmt.Errorf("neighbor %s: %s is %s, want %s", from, key, got, replaced(want, v6))
		}
	}
	for prefix := range c.Routes {
		path, err := s.path(ctx, prefix, from)
		if untold := f.down || f.untold == "v4" && prefix.Addr().Is4() || f.untold == "v6" && prefix.Addr().Is6(); untold {
			if err == nil {
				return fmt.Errorf("%s from %s must not be there: %v", prefix, from, path)
			}
			continue
		}
		if err != nil {
			return err
		}
		for key, want := range f.path {
			if got := lookup(path, key); got != replaced(want, prefix.Addr().Is6()) {
				return fmt.Errorf("%s from %s: %s is %s, want %s", prefix, from, key, got, replaced(want, prefix.Addr().Is6()))
			}
		}
	}
	return nil
}
