// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Text returns the changes for readers, with at most so many Services; 0 means all. It is empty if nothing changes and
// there are no notes.
func (c *Changes) Text(most int) string {
	var b strings.Builder
	for _, r := range c.Refused {
		fmt.Fprintf(&b, "%s\n", r)
	}
	for _, p := range c.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	shown := c.Services
	if most > 0 && len(shown) > most {
		shown = shown[:most]
	}
	for _, s := range shown {
		for _, m := range s.Messages {
			fmt.Fprintf(&b, "%-7s %s: %s\n", s.Effect, s.Service, m)
		}
	}
	if more := len(c.Services) - len(shown); more > 0 {
		fmt.Fprintf(&b, "... and %s (-o json lists all)\n", world.Count(more, "more Service"))
	}
	for _, s := range c.Shards {
		switch {
		case s.To == "":
			fmt.Fprintf(&b, "shard %s: leaves %s, no gateway has it any more\n", s.Shard, s.From)
		case s.From == "":
			fmt.Fprintf(&b, "shard %s (%s): comes to %s\n", s.Shard, world.Count(s.Addresses, "address"), s.To)
		case s.From != s.To:
			fmt.Fprintf(&b, "shard %s (%s): moves from %s to %s\n", s.Shard, world.Count(s.Addresses, "address"), s.From, s.To)
		default:
			fmt.Fprintf(&b, "shard %s (%s): stays on %s; gateways in order: %s, were "+
				"%s\n", s.Shard, world.Count(s.Addresses, "address"),
				s.To, strings.Join(s.After, " "), strings.Join(s.Before, " "))
		}
	}
	for _, s := range c.Sessions {
		fmt.Fprintf(&b, "BGPPeer %s:%s\n", s.Peer, s.text())
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

func (s *SessionChange) text() string {
	text := ""
	for _, part := range []struct {
		nodes []string
		what  string
	}{{s.Opened, "open"}, {s.Closed, "close"}, {s.Reopened, "close and open again"}} {
		if len(part.nodes) > 0 {
			text += fmt.Sprintf(" sessions %s on %s;", part.what, strings.Join(part.nodes, ", "))
		}
	}
	for _, part := range []struct {
		n    int
		what string
	}{{s.Added, "more"}, {s.Withdrawn, "withdrawn"}, {s.Altered, "with other attributes"}} {
		if part.n > 0 {
			text += fmt.Sprintf(" %s %s;", world.Count(part.n, "route"), part.what)
		}
	}
	return strings.TrimSuffix(text, ";")
}
