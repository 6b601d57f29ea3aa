// SPDX-License-Identifier: Apache-2.0

// Package golden runs the txtar goldens of the pure packages: prose, Kubernetes manifests, and the resulting
// decision. It is for tests only.
//
// An archive starts with prose that describes the behaviour it pins. Its files are
//
//	manifests.yaml  IPAddressPools, L2Domains, Nodes, Namespaces, Services, EndpointSlices, Leases,
//	                BGPPeers, BGPAdvertisements, BFDProfiles, Communities, Secrets, and of frr-k8s (if a BGPPeer uses
//	                it) FRRConfigurations, FRRNodeStates, BGPSessionStates, and RouteAdvertisements and
//	                EgressIPs of OVN-Kubernetes
//	cluster         lines "pods PREFIX", "services PREFIX", "internal PREFIX", "autoAssign PREFIX" (OpenShift's)
//	                and "mode MODE [release]"
//	granted         lines "NAMESPACE/NAME ADDRESS...": granted, not yet in a status
//	unsettled       lines "NAMESPACE/NAME ADDRESS...": in writes of the status that may still arrive
//	not-rewritten   lines "ADDRESS": their stale flows can't be repaired, because the status can't be rewritten
//	not-repaired    lines "ADDRESS": their flows stayed stale although the status was rewritten
//	shard-states    lines "DOMAIN/INDEX active=CHASSIS order=CHASSIS,CHASSIS"
//	bridges         lines "CHASSIS NETWORK:BRIDGE,NETWORK:BRIDGE"; CHASSIS alone has none
//	sessions        lines "NODE PEER up", "NODE PEER up without FAMILY" or "NODE PEER PROBLEM...": the state of a BGP
//	                session that a node reports
//	now             the time (RFC 3339)
//	conflicts       lines "ADDRESS MAC NODE TIME" (RFC 3339): addresses that a host outside of the cluster answers for
//	leaving         lines "ADDRESS NAMESPACE/NAME": still in the status of a Service that is no longer served
//	claims          lines "UID POOL ADDRESS", "UID POOL pending" (both may end with "deleting"), "UID POOL refused TEXT",
//	                "UID POOL broken TEXT" or "UID POOL uncreated TEXT": the IPAddressClaim of the Service with a UID
//	                for an external pool (NAMESPACE/UID of one that is gone); "none"; or "missing TEXT" if claims cannot
//	                be read. Without the file they are not known, as on nodes
//	foreign         lines "NAMESPACE/NAME": the status is another controller's; all others are ours
//	want            the decision as text
//
// Every archive has manifests.yaml and want; the other files are optional. With -update, want is rewritten.
package golden

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

//nolint:gochecknoglobals // a flag of the test binaries, registered once
var update = flag.Bool("update", false, "rewrite the want sections of the goldens")

// maxLines limits the length of an archive: a longer one pins more than one behaviour.
const maxLines = 60

// Case is the input of one golden.
type Case struct {
	World *world.Snapshot
}

// Run checks each archive that matches the pattern in a subtest: decide must return the text of its want section.
func Run(t *testing.T, pattern string, decide func(*Case) string) {
	t.Helper()
	RunArchives(t, pattern, func(archive *txtar.Archive) (string, error) {
		c, err := read(archive)
		if err != nil {
			return "", err
		}
		return decide(c), nil
	})
}

// RunArchives is like Run for archives whose files, except want, are read by the caller.
func RunArchives(t *testing.T, pattern string, decide func(*txtar.Archive) (string, error)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens match %s (%v)", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { run(t, file, decide) })
	}
}

func run(t *testing.T, file string, decide func(*txtar.Archive) (string, error)) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decide(archive)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	Compare(t, file, archive, "want", got, maxLines)
}

// Compare checks that a section of an archive is as got, or rewrites it with -update. It also checks that the archive
// has a description, and at most some number of lines.
func Compare(t *testing.T, file string, archive *txtar.Archive, section, got string, lines int) {
	t.Helper()
	if !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == section })
	if at < 0 {
		archive.Files = append(archive.Files, txtar.File{Name: section})
		at = len(archive.Files) - 1
	}
	if d := cmp.Diff(strings.Split(string(archive.Files[at].Data), "\n"), strings.Split(got, "\n")); d != "" {
		if !*update {
			t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, d)
			return
		}
		archive.Files[at].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
	}
	if len(strings.TrimSpace(string(archive.Comment))) == 0 {
		t.Errorf("%s has no description of what it pins", file)
	}
	if n := strings.Count(string(txtar.Format(archive)), "\n"); n > lines {
		t.Errorf("%s has %d lines, more than %d: one behaviour each", file, n, lines)
	}
}

func read(archive *txtar.Archive) (*Case, error) {
	c := &Case{World: &world.Snapshot{ShardStates: map[world.ShardID]world.ShardState{},
		Conflicts: map[netip.Addr]world.Conflict{}, EgressIPs: map[string][]netip.Addr{}, Leaving: map[netip.Addr]world.Key{},
		Granted: map[world.Key][]netip.Addr{}}}
	for _, f := range archive.Files {
		var err error
		switch f.Name {
		case "manifests.yaml":
			err = c.manifests(f.Data)
		case "cluster":
			err = eachLine(f.Data, c.cluster)
		case "granted":
			err = eachAddrs(f.Data, c.World.Granted)
		case "unsettled":
			c.World.Unsettled = map[world.Key][]netip.Addr{}
			err = eachAddrs(f.Data, c.World.Unsettled)
		case "not-rewritten":
			c.World.NotRewritten, err = addrSet(f.Data)
		case "not-repaired":
			c.World.NotRepaired, err = addrSet(f.Data)
		case "shard-states":
			err = eachLine(f.Data, c.shardState)
		case "bridges":
			err = eachLine(f.Data, c.bridges)
		case "sessions":
			err = eachLine(f.Data, c.session)
		case "now":
			c.World.Now, err = time.Parse(time.RFC3339, strings.TrimSpace(string(f.Data)))
		case "conflicts":
			err = eachLine(f.Data, c.conflict)
		case "claims":
			err = eachLine(f.Data, c.claim)
		case "foreign":
			err = eachLine(f.Data, c.foreign)
		case "leaving":
			err = eachLine(f.Data, c.leaving)
		case "want":
		default:
			err = fmt.Errorf("unknown file")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	c.World.NameGateways(c.World.ShardStates)
	return c, nil
}

func eachLine(data []byte, read func(words []string) error) error {
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := read(words); err != nil {
			return fmt.Errorf("line %q: %w", strings.TrimSpace(line), err)
		}
	}
	return nil
}

func (c *Case) cluster(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("want two words")
	}
	switch words[0] {
	case "autoAssign":
		c.World.Cluster.AutoAssignCIDRs = append(c.World.Cluster.AutoAssignCIDRs, words[1])
		return nil
	case "mode":
		mode, ok := world.ParseMode(words[1])
		if !ok {
			return fmt.Errorf("%q is no mode", words[1])
		}
		c.World.Cluster.ModeSetting = world.ModeSetting{Mode: mode, By: "who says so", Release: len(words) > 2}
		return nil
	}
	p, err := netip.ParsePrefix(words[1])
	if err != nil {
		return err
	}
	switch words[0] {
	case "pods":
		c.World.Cluster.ClusterSubnets = append(c.World.Cluster.ClusterSubnets, p)
	case "services":
		c.World.Cluster.ServiceSubnets = append(c.World.Cluster.ServiceSubnets, p)
	case "internal":
		c.World.Cluster.InternalSubnets = append(c.World.Cluster.InternalSubnets, p)
	default:
		return fmt.Errorf("%q is none of pods, services, internal, autoAssign and mode", words[0])
	}
	return nil
}

// eachAddrs reads lines "NAMESPACE/NAME ADDRESS...".
func eachAddrs(data []byte, into map[world.Key][]netip.Addr) error {
	return eachLine(data, func(words []string) error {
		namespace, name, ok := strings.Cut(words[0], "/")
		if !ok {
			return fmt.Errorf("%q is not NAMESPACE/NAME", words[0])
		}
		key := world.Key{Namespace: namespace, Name: name}
		for _, word := range words[1:] {
			a, err := netip.ParseAddr(word)
			if err != nil {
				return err
			}
			into[key] = append(into[key], a)
		}
		return nil
	})
}

// addrSet reads lines "ADDRESS".
func addrSet(data []byte) (map[netip.Addr]bool, error) {
	set := map[netip.Addr]bool{}
	err := eachLine(data, func(words []string) error {
		a, err := netip.ParseAddr(words[0])
		set[a] = true
		return err
	})
	return set, err
}

func (c *Case) conflict(words []string) error {
	if len(words) != 4 {
		return fmt.Errorf("want four words")
	}
	a, err := netip.ParseAddr(words[0])
	if err != nil {
		return err
	}
	since, err := time.Parse(time.RFC3339, words[3])
	if err != nil {
		return err
	}
	c.World.Conflicts[a] = world.Conflict{MAC: words[1], Node: words[2], Since: since}
	return nil
}

func (c *Case) foreign(words []string) error {
	for _, s := range c.World.Services {
		if s.Key.String() == words[0] {
			s.Given = nil
			return nil
		}
	}
	return fmt.Errorf("no such Service before it")
}

func (c *Case) leaving(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("want two words")
	}
	a, err := netip.ParseAddr(words[0])
	if err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(words[1], "/")
	c.World.Leaving[a] = world.Key{Namespace: namespace, Name: name}
	return nil
}

func (c *Case) session(words []string) error {
	if len(words) < 3 {
		return fmt.Errorf("want three words")
	}
	if c.World.Sessions == nil {
		c.World.Sessions = map[string]map[string]world.PeerSession{}
	}
	if c.World.Sessions[words[0]] == nil {
		c.World.Sessions[words[0]] = map[string]world.PeerSession{}
	}
	s := world.PeerSession{Established: words[2] == "up"}
	if s.Established {
		without := strings.Join(words[3:], " ")
		s.WithoutIPv4, s.WithoutIPv6 = without == "without IPv4", without == "without IPv6"
	} else {
		s.Problem = strings.Join(words[2:], " ")
	}
	c.World.Sessions[words[0]][words[1]] = s
	return nil
}

func (c *Case) bridges(words []string) error {
	if c.World.Bridges == nil {
		c.World.Bridges = map[string]world.Bridges{}
	}
	c.World.Bridges[words[0]] = world.ParseBridges(strings.Join(words[1:], ","))
	return nil
}

func (c *Case) shardState(words []string) error {
	domain, number, _ := strings.Cut(words[0], "/")
	index, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%q is not DOMAIN/INDEX: %w", words[0], err)
	}
	var state world.ShardState
	for _, word := range words[1:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "active":
			state.Active, state.Settled = value, true
		case "claims":
			state.Active = value
		case "order":
			state.Order = strings.Split(value, ",")
		case "handover":
			switch value {
			case "awaited":
				state.Handover = world.HandoverAwaited
			case "claimed":
				state.Handover = world.HandoverClaimed
			}
		default:
			return fmt.Errorf("%q is none of active=, claims=, order= and handover=", word)
		}
	}
	c.World.ShardStates[world.ShardID{Domain: domain, Index: index}] = state
	return nil
}

// File checks that a whole file is as got, or rewrites it with -update.
func File(t *testing.T, file, got string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if string(want) == got {
		return
	}
	if !*update {
		t.Errorf("%s is not what the code makes (-update rewrites it); read: %v", file, err)
		return
	}
	if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a source file
		t.Fatal(err)
	}
}
