// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// maxRefused is the number of Services that a refusal to drain a node names unless all are wanted.
const maxRefused = 10

// refusal returns why a node is not drained: Services that lose their last route, and those that stay on the node,
// because it is the last gateway. It is nil if there are none. It names up to most Services of each.
func refusal(node string, lose, stay []string, most int) error {
	var why []string
	if n := len(lose); n > 0 {
		why = append(why, fmt.Sprintf("%s would no longer be announced, because no other node advertises them: %s",
			world.Count(n, "Service"), someOfEach(lose, most)))
	}
	if n := len(stay); n > 0 {
		why = append(why, fmt.Sprintf("%s would stay on it, because all gateways of their L2Domain drain: %s",
			world.Count(n, "Service"), someOfEach(stay, most)))
	}
	if len(why) == 0 {
		return nil
	}
	return fmt.Errorf("node %s is not drained: %s; --force drains it all the same", node, strings.Join(why, "; "))
}

// someOfEach joins up to most Services, NAMESPACE/NAME: one of each namespace, then a second one of each, and so on, so
// that a tenant with many Services does not hide those of others. It says how many more there are, and in how many
// namespaces of which it names none.
func someOfEach(services []string, most int) string {
	list := byTurns(services)
	text := world.Some(list, most)
	if len(list) <= most {
		return text
	}
	named, unnamed := map[string]bool{}, map[string]bool{}
	for i, s := range list {
		if n := namespaceOf(s); i < most {
			named[n] = true
		} else if !named[n] {
			unnamed[n] = true
		}
	}
	if n := len(unnamed); n > 0 {
		text += ", also in " + world.Count(n, "other namespace")
	}
	return text + " (-o wide names all)"
}

// byTurns returns Services in an order in which the namespaces take turns. Those of a namespace stay in their order.
func byTurns(services []string) []string {
	turn, next := map[string]int{}, map[string]int{}
	for _, s := range services {
		n := namespaceOf(s)
		turn[s] = next[n]
		next[n]++
	}
	return slices.SortedStableFunc(slices.Values(services), func(a, b string) int { return cmp.Compare(turn[a], turn[b]) })
}

func namespaceOf(service string) string {
	namespace, _, _ := strings.Cut(service, "/")
	return namespace
}
