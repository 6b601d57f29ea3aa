// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// forbidding is a client that may list nothing.
type forbidding struct{}

func (forbidding) err() error {
	return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "l2domains"}, "",
		errors.New("no RBAC policy matched"))
}

func (f forbidding) List(context.Context, metav1.ListOptions) (*v1alpha1.L2DomainList, error) {
	return nil, f.err()
}

func (f forbidding) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, f.err()
}

// A process whose permissions do not fit its flags says what it must not read, not only that it has not read it.
func TestUnreadNamesTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newInformer(forbidding{}, &v1alpha1.L2Domain{}, whole[*v1alpha1.L2Domain], func(_, _ *v1alpha1.L2Domain) {})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.RunWithContext(ctx) })
		synctest.Wait()
		got := strings.Join(Unread(map[string]cache.Controller{"l2domains": c}), ", ")
		if want := "l2domains (l2domains.slb.k8s.ovn.org is forbidden: no RBAC policy matched)"; got != want {
			t.Errorf("unread: %s\nwant: %s", got, want)
		}
		stop()
		running.Wait()
	})
}
