// SPDX-License-Identifier: Apache-2.0

package sdn_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// An archive contains the files shards (lines "DOMAIN/INDEX NODE:INTERFACE..."), services (lines "NAMESPACE/NAME
// ADDRESS@DOMAIN/INDEX..."), annotations (existing annotations, lines "NODE ANNOTATION"), status (gateways of shards in
// the statuses of L2Domains, lines "DOMAIN/INDEX NODE..."), and keep (any content: assignments of other Services are
// kept).
func TestGoldens(t *testing.T) {
	golden.RunArchives(t, "testdata/*.txtar", func(archive *txtar.Archive) (string, error) {
		files := map[string]string{}
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
		}
		var out strings.Builder
		have := sdn.Table{}
		for line := range strings.Lines(files["annotations"]) {
			node, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			held, err := sdn.Parse(text)
			if err != nil {
				fmt.Fprintf(&out, "node %s: %v\n", node, err)
			}
			for _, h := range held {
				have.Add(node, h)
			}
		}
		topology, err := readShards(files["shards"])
		if err != nil {
			return "", err
		}
		plans, err := readServices(files["services"])
		if err != nil {
			return "", err
		}
		orders := sdn.Orders{}
		for line := range strings.Lines(files["status"]) {
			words := strings.Fields(line)
			shard, ok := world.ParseShard(words[0])
			if !ok {
				return "", fmt.Errorf("%q is no shard", words[0])
			}
			orders[shard] = words[1:]
		}
		states := have.ShardStates(orders)
		for _, shard := range slices.SortedFunc(maps.Keys(states), world.ShardID.Compare) {
			fmt.Fprintf(&out, "shard %s is active on %s\n", shard.Name(), states[shard].Active)
		}
		_, keep := files["keep"]
		desired := sdn.Want(topology, plans, have, func(world.Key) bool { return keep })
		for _, key := range slices.SortedFunc(maps.Keys(desired.Failed), world.Key.Compare) {
			fmt.Fprintf(&out, "%s: %s\n", key, desired.Failed[key])
		}
		for _, s := range sdn.Release(have, desired.Table) {
			fmt.Fprintf(&out, "first: %s\n", s)
			assign(have, s)
		}
		for _, s := range sdn.Take(have, desired.Table, func(netip.Addr) bool { return false }) {
			fmt.Fprintf(&out, "then: %s\n  %s\n", s, sdn.Format(s.Held))
		}
		return out.String(), nil
	})
}

func readShards(text string) (*plan.Topology, error) {
	t := &plan.Topology{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		shard := plan.Shard{}
		if _, err := fmt.Sscanf(strings.Replace(words[0], "/", " ", 1), "%s %d", &shard.ID.Domain,
			&shard.ID.Index); err != nil {
			return nil, err
		}
		for _, word := range words[1:] {
			node, dev, _ := strings.Cut(word, ":")
			shard.Gateways = append(shard.Gateways, plan.Gateway{Node: node, Chassis: node, Interface: dev})
		}
		t.Domains = append(t.Domains, plan.Domain{Name: shard.ID.Domain, Shards: []plan.Shard{shard}})
	}
	return t, nil
}

func readServices(text string) (map[world.Key]*plan.Service, error) {
	plans := map[world.Key]*plan.Service{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		ns, name, _ := strings.Cut(words[0], "/")
		p := &plan.Service{Key: world.Key{Namespace: ns, Name: name}}
		for _, word := range words[1:] {
			addr, at, _ := strings.Cut(word, "@")
			v := plan.VIP{}
			if _, err := fmt.Sscanf(strings.Replace(at, "/", " ", 1), "%s %d", &v.Shard.Domain, &v.Shard.Index); err != nil {
				return nil, err
			}
			var err error
			if v.Addr, err = netip.ParseAddr(addr); err != nil {
				return nil, err
			}
			p.VIPs = append(p.VIPs, v)
		}
		plans[p.Key] = p
	}
	return plans, nil
}
