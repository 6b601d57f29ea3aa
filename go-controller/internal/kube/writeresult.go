// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
)

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
	case kind == claimKind && (errors.IsForbidden(err) && !isUnauthorized(err) || errors.IsInvalid(err)):
		return "refused"
	}
	return "error"
}

// isUnauthorized reports whether the API server refuses a write for lack of a permission. Admission and quotas give the
// same reason and code: only the message says which it was (ForbiddenStatusError in k8s.io/apiserver).
func isUnauthorized(err error) bool {
	_, why, _ := strings.Cut(err.Error(), " is forbidden: ")
	return strings.HasPrefix(why, `User "`) && strings.Contains(why, `" cannot `)
}
