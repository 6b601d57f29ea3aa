// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Announced returns the addresses of the given Services for which the northbound database has load balancers. It
// returns nil while the database can't be read. It may be called from any goroutine.
func (d *Dataplane) Announced(services []world.Key) map[netip.Addr]bool {
	_, nb, err := d.nb.current()
	if err != nil {
		return nil
	}
	all := map[netip.Addr]bool{}
	for _, key := range services {
		for _, r := range nb.withID(rows.LoadBalancer, rows.KeyService, key.String()) {
			vips, _ := r.column("vips").(map[string]string)
			for vip := range vips {
				if at, err := netip.ParseAddrPort(vip); err == nil { // ovn-nb(5): ADDRESS:PORT, IPv6 in brackets
					all[at.Addr()] = true
				}
			}
		}
	}
	return all
}
