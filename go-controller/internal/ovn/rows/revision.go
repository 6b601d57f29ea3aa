// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/binary"
	"net/netip"
)

// RevisionSet is the name of the Address_Set with the number of the last transaction. ovn-northd copies every
// Address_Set to the southbound database (ovn-northd(8)), in the same transaction as what it made of all else that it
// has read. The southbound copy thus shows up to which transaction ovn-northd has translated the northbound database.
// ADR 20 says why NB_Global.nb_cfg does not serve.
const RevisionSet = "slb_revision"

// Revision returns the row with the number of a transaction. No logical flow refers to the set.
func Revision(number uint64) Row {
	var a [16]byte
	binary.BigEndian.PutUint64(a[8:], number)
	return owned(AddressSet, OwnerRevision, RevisionSet, map[string]any{
		"name": RevisionSet, "addresses": []string{netip.AddrFrom16(a).String()},
	})
}

// ParseRevision returns the number in the addresses of such a row, 0 if there is none.
func ParseRevision(addresses []string) uint64 {
	var number uint64
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err == nil && a.Is6() {
			b := a.As16()
			number = max(number, binary.BigEndian.Uint64(b[8:]))
		}
	}
	return number
}
