// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// claim reads a line of claims.
func (c *Case) claim(words []string) error {
	if c.World.Claims == nil {
		c.World.Claims = &world.Claims{Namespace: "ovn-kubernetes", ByName: map[string]*world.Claim{},
			Refused: map[string]string{}}
	}
	k := c.World.Claims
	switch {
	case words[0] == "missing":
		k.Missing = strings.Join(words[1:], " ")
		return nil
	case words[0] == "none":
		return nil
	case len(words) < 3:
		return fmt.Errorf("want UID POOL STATE")
	}
	i := slices.IndexFunc(c.World.Pools, func(p *world.Pool) bool { return p.Name == words[1] })
	if i < 0 || c.World.Pools[i].External == nil {
		return fmt.Errorf("%q is no external pool", words[1])
	}
	p := c.World.Pools[i]
	namespace, uid, known := strings.Cut(words[0], "/")
	if !known {
		uid = namespace
		at := slices.IndexFunc(c.World.Services, func(s *world.Service) bool { return s.UID == uid })
		namespace = ""
		if at >= 0 {
			namespace = c.World.Services[at].Key.Namespace
		}
	}
	claim := &world.Claim{Name: world.ClaimName(p, uid), Namespace: namespace, UID: uid, Pool: p.Name,
		Ref: p.External.PoolRef}
	state, text := words[2], strings.Join(words[3:], " ")
	switch state {
	case "pending":
	case "refused":
		claim.Refusal = text
	case "broken":
		claim.Problem = text
	case "uncreated":
		k.Refused[claim.Name] = text
		return nil
	default:
		var err error
		if claim.Addr, err = netip.ParseAddr(state); err != nil {
			return err
		}
	}
	claim.Deleting = state != "refused" && state != "broken" && text == "deleting"
	k.ByName[claim.Name] = claim
	return nil
}
