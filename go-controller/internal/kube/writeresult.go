// SPDX-License-Identifier: Apache-2.0

package kube

import "k8s.io/apimachinery/pkg/api/errors"

// claimKind is the kind of claims in calls of Wrote.
const claimKind = "IPAddressClaim"

// WriteResult returns the result of a write for metrics: ok, conflict, gone (the object was deleted), refused (the
// provider of an external pool refuses a claim, which the condition Allocated shows) or error.
func WriteResult(kind string, err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.IsConflict(err):
		return "conflict"
	case errors.IsNotFound(err):
		return "gone"
	case kind == claimKind && (errors.IsForbidden(err) || errors.IsInvalid(err)):
		return "refused"
	}
	return "error"
}
