// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The text names what matters up to a limit, groups the rest, and says how to see all.
func TestTextIsBounded(t *testing.T) {
	c := &Changes{}
	service := func(name string, e Effect, m Message) ServiceChange {
		return ServiceChange{name, e, []Message{m}, false}
	}
	for i := range maxNamed + 7 {
		c.Refused = append(c.Refused, fmt.Sprintf("IPAddressPool p%02d: would be refused", i))
		c.Problems = append(c.Problems, fmt.Sprintf("IPAddressPool p%02d: overlaps", i))
		c.Services = append(c.Services,
			service(fmt.Sprintf("a/%02d", i), Alters, Message{"moved " + fmt.Sprint(i), ""}),
			service(fmt.Sprintf("b/%02d", i), Loses, Message{"lost " + fmt.Sprint(i), ""}),
			service(fmt.Sprintf("c/%02d", i), Gains, Message{"gets 10.0.0.1", "get an address"}))
		c.Shards = append(c.Shards, ShardChange{Shard: fmt.Sprintf("lan/%d", i), From: "n1", To: "n2"},
			ShardChange{Shard: fmt.Sprintf("lan/%d", 100+i), From: "n1", To: "n1"})
	}
	c.Sessions = []SessionChange{{Peer: "tor", Closed: []string{"n1", "n2", "n3", "n4", "n5"}}}
	text := c.Text(false)
	for part, times := range map[string]int{
		"would be refused\n": maxNamed, "problem: ": maxNamed, ": moved ": maxNamed, ": lost ": maxNamed,
		": moves from n1 to n2\n":                          maxNamed,
		"... and 7 more (-o wide lists all)\n":             5,
		"gains   57 Services get an address: c/00, c/01, ": 1,
		"57 shards stay on their gateways, with other gateways behind them: lan/100, lan/101, lan/102 and 54 more\n": 1,
		"sessions close on n1, n2, n3 and 2 more\n": 1,
	} {
		if n := strings.Count(text, part); n != times {
			t.Errorf("%q is %d times in the text, want %d:\n%s", part, n, times, text)
		}
	}
	if lost, moved := strings.Index(text, ": lost "), strings.Index(text, ": moved "); lost > moved {
		t.Errorf("what is lost is not first:\n%s", text)
	}
	want := len(c.Refused) + len(c.Problems) + len(c.Services) + len(c.Shards) + len(c.Sessions)
	if wide := c.Text(true); strings.Count(wide, "\n") != want || strings.Contains(wide, "more") {
		t.Errorf("want %d lines and no groups:\n%s", want, wide)
	}
}

// A group counts Services, not their addresses.
func TestGroupCountsAServiceOnce(t *testing.T) {
	c := &Changes{}
	for i := range maxGroupNames + 1 {
		c.Services = append(c.Services, ServiceChange{fmt.Sprintf("a/%d", i), Gains, []Message{
			{"gets 10.0.0.1", "get an address"}, {"gets fd00::1", "get an address"}}, false})
	}
	if got, want := c.Text(false), "gains   4 Services get an address: a/0, a/1, a/2 and 1 more\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Programs read the messages as strings.
func TestJSONOfServices(t *testing.T) {
	c := ServiceChange{"a/b", Gains, []Message{{"gets 10.0.0.1", "get an address"}}, false}
	const want = `{"service":"a/b","effect":"gains","messages":["gets 10.0.0.1"]}`
	if got, err := json.Marshal(c); err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestGroupOfAddressesWhoseRoutesChange(t *testing.T) {
	none, one := &announcement{}, &announcement{nodes: []string{"n1"}}
	two := &announcement{nodes: []string{"n1", "n2"}}
	for want, change := range map[string][2]*announcement{
		"become advertised by BGP":        {none, two},
		"are no longer advertised by BGP": {two, none},
		"are advertised by other nodes":   {two, one},
	} {
		if got := change[0].groupOfChange(change[1]); got != want {
			t.Errorf("from %v to %v: %q, want %q", change[0].nodes, change[1].nodes, got, want)
		}
	}
}
