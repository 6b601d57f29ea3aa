// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a tenant can cause is no error: an alert is about those.
func TestResultsOfWrites(t *testing.T) {
	of := schema.GroupResource{Resource: "x"}
	denied := apierrors.NewForbidden(of, "", errors.New( // as ForbiddenStatusError in k8s.io/apiserver
		`User "us" cannot create resource "x" in API group "" in the namespace "slb"`))
	for _, c := range []struct {
		kind, want string
		err        error
	}{
		{"Service", "ok", nil},
		{"Service", "gone", apierrors.NewNotFound(of, "web")},
		{"Service", "conflict", apierrors.NewConflict(of, "web", nil)},
		{"Service", "error", apierrors.NewForbidden(of, "web", nil)},
		{claimKind, "refused", apierrors.NewForbidden(of, "web", errors.New("exceeded quota: claims"))},
		{claimKind, "refused", apierrors.NewForbidden(of, "", errors.New(`admission webhook "ipam" denied the request`))},
		{claimKind, "refused", apierrors.NewInvalid(schema.GroupKind{Kind: "x"}, "web", nil)},
		{claimKind, "error", denied},
		{claimKind, "error", fmt.Errorf("create a claim: %w", denied)},
		{claimKind, "error", apierrors.NewServiceUnavailable("down")},
	} {
		if got := WriteResult(c.kind, c.err); got != c.want {
			t.Errorf("%s, %v: result %s, want %s", c.kind, c.err, got, c.want)
		}
	}
}
