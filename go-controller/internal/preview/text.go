// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// maxNamed is the number of lines of one sort that a text for readers has at most.
	maxNamed = 50
	// maxGroupNames is the number of names that a group has at most. As many equal changes are not grouped.
	maxGroupNames = 3
)

// Text returns the changes for readers. Unless all are wanted, equal changes that do not matter are grouped, and the
// number of lines is bounded. It is empty if nothing changes and there are no notes.
func (c *Changes) Text(all bool) string {
	var b strings.Builder
	list(&b, "", c.Refused, all)
	problems := make([]string, 0, len(c.Problems))
	for _, p := range c.Problems {
		problems = append(problems, "problem: "+p)
	}
	list(&b, "", problems, all)
	edited := make([]string, 0, len(c.Objects))
	for _, e := range c.Objects {
		edited = append(edited, e.text())
	}
	list(&b, "", edited, all)
	domains := make([]string, 0, len(c.Domains))
	for _, d := range c.Domains {
		domains = append(domains, d.text())
	}
	list(&b, "", domains, all)
	for _, e := range []Effect{Loses, Alters, Gains} {
		c.writeServices(&b, e, all)
	}
	c.writeShards(&b, all)
	for _, s := range c.Sessions {
		fmt.Fprintf(&b, "BGPPeer %s:%s\n", s.Peer, s.text(all))
		if s.EndsBFD {
			fmt.Fprintf(&b, "BGPPeer %s: BFD ends, and routers close sessions for that: so nodes close them first\n", s.Peer)
		}
		if s.Rollout != "" {
			fmt.Fprintf(&b, "BGPPeer %s: %s\n", s.Peer, s.Rollout)
		}
	}
	notes := make([]string, 0, len(c.Notes))
	for _, n := range c.Notes {
		notes = append(notes, "note: "+n)
	}
	list(&b, "", notes, all)
	return b.String()
}

// list writes lines with an indent. Unless all are wanted, it writes the first ones and the number of the others.
func list(b *strings.Builder, indent string, lines []string, all bool) {
	for i, line := range lines {
		if i == maxNamed && !all {
			fmt.Fprintf(b, "%s... and %d more (-o wide lists all)\n", indent, len(lines)-i)
			return
		}
		b.WriteString(indent + line + "\n")
	}
}

// names joins names; unless all are wanted, only the first ones.
func names(list []string, all bool) string {
	if len(list) > maxGroupNames && !all {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxGroupNames], ", "), len(list)-maxGroupNames)
	}
	return strings.Join(list, ", ")
}

// writeServices writes the changes of Services with an effect: by name those that matter, and small groups.
func (c *Changes) writeServices(b *strings.Builder, e Effect, all bool) {
	groups := map[string][]string{}
	for _, s := range c.Services {
		for _, m := range s.Messages {
			named := groups[m.group]
			if s.Effect == e && m.group != "" && (len(named) == 0 || named[len(named)-1] != s.Service) {
				groups[m.group] = append(named, s.Service) // once, whatever the number of its addresses
			}
		}
	}
	maps.DeleteFunc(groups, func(_ string, services []string) bool { return all || len(services) <= maxGroupNames })
	var lines []string
	for _, s := range c.Services {
		var texts []string
		for _, m := range s.Messages {
			if s.Effect == e && groups[m.group] == nil {
				texts = append(texts, m.Text)
			}
		}
		if len(texts) > 0 {
			lines = append(lines, fmt.Sprintf("%-7s %s: %s", e, s.Service, strings.Join(texts, "; ")))
		}
	}
	list(b, "", lines, all)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		services := groups[group]
		fmt.Fprintf(b, "%-7s %s %s: %s\n", e, world.Count(len(services), "Service"), group, names(services, false))
	}
}

// writeShards writes shards that move, and those whose other gateways change.
func (c *Changes) writeShards(b *strings.Builder, all bool) {
	var moves, stays, staying []string
	for _, s := range c.Shards {
		addresses := world.Count(s.Addresses, "address")
		switch {
		case len(s.OneOf) > 0:
			moves = append(moves, fmt.Sprintf("shard %s (%s): comes to one of %s", s.Shard, addresses, names(s.OneOf, all)))
		case s.To == "":
			moves = append(moves, fmt.Sprintf("shard %s: leaves %s, no gateway has it any more", s.Shard, s.From))
		case s.From == "":
			moves = append(moves, fmt.Sprintf("shard %s (%s): comes to %s", s.Shard, addresses, s.To))
		case s.From != s.To:
			moves = append(moves, fmt.Sprintf("shard %s (%s): moves from %s to %s", s.Shard, addresses, s.From, s.To))
		default:
			stays = append(stays, fmt.Sprintf("shard %s (%s): stays on %s; gateways in order: %s, were %s", s.Shard,
				addresses, s.To, strings.Join(s.After, " "), strings.Join(s.Before, " ")))
			staying = append(staying, s.Shard)
		}
	}
	list(b, "", moves, all)
	if len(stays) > maxGroupNames && !all {
		stays = []string{fmt.Sprintf("%s stay on their gateways, with other gateways behind them: %s",
			world.Count(len(staying), "shard"), names(staying, false))}
	}
	list(b, "", stays, all)
}

func (c *SessionChange) text(all bool) string {
	text := ""
	for _, part := range []struct {
		nodes []string
		what  string
	}{
		{c.Opened, "open"}, {c.Closed, "close"}, {c.Reopened, "close and open again"},
		{c.Kept, "stay open, if this restores the settings that they still have from before the last edit,"},
		{c.Adjusted, "change without closing"},
	} {
		if len(part.nodes) > 0 {
			text += fmt.Sprintf(" sessions %s on %s;", part.what, names(part.nodes, all))
		}
	}
	for _, part := range []struct {
		n    int
		what string
	}{{c.Added, "more"}, {c.Withdrawn, "withdrawn"}, {c.Altered, "with other attributes"}} {
		if part.n > 0 {
			text += fmt.Sprintf(" %s %s;", world.Count(part.n, "route"), part.what)
		}
	}
	return strings.TrimSuffix(text, ";")
}
