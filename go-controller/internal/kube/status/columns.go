// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxColumn is the number of bytes up to which a column names further values.
const maxColumn = 60

// column joins values for a column of kubectl get, which prints lists as JSON: the first ones, and how many follow.
func column[T any](values []T, text func(T) string) string {
	out := ""
	for i, v := range values {
		next := text(v)
		switch {
		case i == 0:
			out = next
		case len(out)+len(next) > maxColumn:
			return fmt.Sprintf("%s and %d more", out, len(values)-i)
		default:
			out += ", " + next
		}
	}
	return out
}

func same[T ~string](v T) string { return string(v) }

// setColumn sets a field, and reports whether that changed it.
func setColumn(field *string, text string) bool {
	changed := *field != text
	*field = text
	return changed
}

func poolColumn(o *v1alpha1.IPAddressPool) string {
	if x := o.Spec.ExternalPool; x != nil {
		return x.Kind + "/" + x.Name
	}
	return column(o.Spec.Addresses, same)
}

func domainColumn(o *v1alpha1.L2Domain) string {
	return column(o.Spec.Subnets, func(s v1alpha1.Subnet) string { return s.CIDR })
}

func setAdvertisementColumns(o *v1alpha1.BGPAdvertisement) bool {
	pools := setColumn(&o.Status.IPAddressPools, column(o.Spec.IPAddressPools, same))
	return setColumn(&o.Status.Peers, column(o.Spec.Peers, same)) || pools
}

func setCommunityColumns(o *v1alpha1.Community) bool {
	return setColumn(&o.Status.Communities, column(o.Spec.Communities,
		func(c v1alpha1.CommunityAlias) string { return c.Name + "=" + c.Value }))
}
