// SPDX-License-Identifier: Apache-2.0

package world

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
)

// ExternalPool is a pool of an address management provider, by Cluster API's contract. It has addresses of one family.
type ExternalPool struct {
	PoolRef
	Family Family
}

// PoolRef identifies a provider's pool, as in spec.poolRef of an IPAddressClaim.
type PoolRef struct{ APIGroup, Kind, Name string }

func (r PoolRef) String() string { return r.Kind + "." + r.APIGroup + "/" + r.Name }

// Claims are the IPAddressClaims of ours.
type Claims struct {
	// Namespace is that of the claims, the controller's own.
	Namespace string
	// Missing is why claims can be neither read nor written; empty if they can. Then ByName has them all.
	Missing string
	ByName  map[string]*Claim
	// Refused are the errors of the API server about claims that could not be written, by name.
	Refused map[string]string
	// Deleted are those that another client deletes again and again, so that their creation waits.
	Deleted map[string]bool
}

// Claim is an IPAddressClaim with the IPAddress that fulfils it.
type Claim struct {
	Name string
	// Namespace and UID are those of the Service for which the claim was created.
	Namespace, UID string
	// Pool is the name of the IPAddressPool for which the claim was created, and Ref its spec.poolRef.
	Pool string
	Ref  PoolRef
	// Addr is the address, as the IPAddress has it. It is the zero Addr if the claim is not fulfilled, or if Problem is
	// set: what is wrong with the IPAddress.
	Addr    netip.Addr
	Problem string
	// Refusal is why the provider does not fulfil the claim (reason and message of its condition Ready); empty if it has
	// not said so.
	Refusal string
	// Deleting means that the claim is being deleted, and only its finalizers keep it.
	Deleting bool
	// Kept means that the claim has our finalizer.
	Kept bool
}

// WantedClaim is an IPAddressClaim that must exist, or must stay.
type WantedClaim struct {
	Name    string
	Pool    string
	Ref     PoolRef
	Service Key
	UID     string
	// InUse means that a Service may have the address of the claim. It stays, and is not created if it does not exist: it
	// could have another address only.
	InUse bool
}

// ClaimName returns the name of the claim for the address that a Service gets from an external pool. It differs for
// each Service (a Service that is created again has another UID), pool, and provider's pool: the spec of a claim is
// immutable.
func ClaimName(pool *Pool, uid string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", pool.Name, pool.External.PoolRef, pool.External.Family))
	return fmt.Sprintf("slb-%s-%s-%x", uid, strings.ToLower(pool.External.Family.String()), sum[:4])
}
