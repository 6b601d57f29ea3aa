// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// faultyLister is a client whose requests fail, hang or succeed. Its watches end when that changes.
type faultyLister struct {
	mu      sync.Mutex
	err     error
	hangs   bool
	streams bool // the client supports watches that begin with the objects that exist
	// broken is what such a watch ends with instead of a bookmark.
	broken  *metav1.Status
	watches []*watch.RaceFreeFakeWatcher
}

func (f *faultyLister) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	for _, w := range f.watches {
		w.Stop()
	}
	f.watches = nil
}

func (f *faultyLister) answer(ctx context.Context) error {
	f.mu.Lock()
	err, hangs := f.err, f.hangs
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *faultyLister) List(ctx context.Context, _ metav1.ListOptions) (*v1alpha1.L2DomainList, error) {
	return &v1alpha1.L2DomainList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, f.answer(ctx)
}

func (f *faultyLister) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	broken := f.broken
	f.mu.Unlock()
	w := watch.NewRaceFreeFake()
	if o.SendInitialEvents != nil {
		switch {
		case !f.streams:
			return nil, apierrors.NewInvalid(v1alpha1.GroupVersion().WithKind("L2Domain").GroupKind(), "", nil)
		case broken != nil:
			w.Error(broken)
		default:
			end := &v1alpha1.L2Domain{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7",
				Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
			w.Action(watch.Bookmark, end)
		}
	} else if err := f.answer(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches = append(f.watches, w)
	return w, nil
}

// IsWatchListSemanticsUnSupported tells client-go to list.
func (f *faultyLister) IsWatchListSemanticsUnSupported() bool { return !f.streams }

// inspected runs an informer of a client, and calls inspect with what returns the kinds that it can't read.
func inspected(t *testing.T, client *faultyLister, inspect func(unread func() map[string]string)) {
	t.Helper()
	// The second handler of client-go sleeps since an error of real time, which is in the future of the virtual clock.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = handlers[:1]
	defer func() { utilruntime.ErrorHandlers = handlers }()
	synctest.Test(t, func(t *testing.T) {
		c := newInformer(client, &v1alpha1.L2Domain{}, whole[*v1alpha1.L2Domain], func(_, _ *v1alpha1.L2Domain) {})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.RunWithContext(ctx) })
		synctest.Wait()
		inspect(func() map[string]string {
			synctest.Wait()
			return UnreadKinds(map[string]cache.Controller{"l2domains": c})
		})
		stop()
		running.Wait()
	})
}

func TestUnreadKindIsNamedAfterTwoMinutes(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(*faultyLister)
		want string
	}{
		"requests fail":   {func(f *faultyLister) { f.err = errors.New("forbidden") }, "forbidden"},
		"no answer comes": {func(f *faultyLister) { f.hangs = true }, "the API server does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			client := &faultyLister{}
			inspected(t, client, func(unread func() map[string]string) {
				<-time.After(time.Hour)
				if got := unread(); len(got) > 0 {
					t.Errorf("after an hour with one watch: %v", got)
				}
				client.set(func() { c.fail(client) })
				<-time.After(unreadAfter - time.Second)
				if got := unread(); len(got) > 0 {
					t.Errorf("before two minutes: %v", got)
				}
				<-time.After(3 * time.Second) // client-go rests for about a second before it tries again
				if diff := cmp.Diff(map[string]string{"l2domains": c.want}, unread()); diff != "" {
					t.Errorf("after two minutes: %s", diff)
				}
				if client.hangs {
					return // the request ends with the process
				}
				client.set(func() { client.err = nil })
				<-time.After(time.Minute + time.Second)
				if got := unread(); len(got) > 0 {
					t.Errorf("after a success: %v", got)
				}
			})
		})
	}
}

// The API server accepts a watch that begins with the objects that exist, and then finds that it can't decode one.
func TestUnreadKindWhoseInitialObjectsFail(t *testing.T) {
	client := &faultyLister{streams: true}
	inspected(t, client, func(unread func() map[string]string) {
		<-time.After(time.Hour)
		if got := unread(); len(got) > 0 {
			t.Errorf("after an hour with one watch: %v", got)
		}
		err := apierrors.NewInternalError(errors.New("can't decrypt it"))
		client.set(func() { client.err, client.broken = err, &err.ErrStatus })
		<-time.After(unreadAfter + time.Minute)
		if got := unread()["l2domains"]; !strings.Contains(got, "can't decrypt it") {
			t.Errorf("after two minutes: %q", got)
		}
		client.set(func() { client.err, client.broken = nil, nil })
		<-time.After(time.Minute + time.Second)
		if got := unread(); len(got) > 0 {
			t.Errorf("after a success: %v", got)
		}
	})
}

// The modules of a process that runs on a node share the metric, and docs/metrics.md has its text.
func TestUnreadKindsMetric(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, kinds := range []map[string]string{{"nodes": "forbidden"}, {"nodes": "forbidden", "services": "no answer"}} {
		if err := RegisterUnreadKinds(r, func() map[string]string { return kinds }); err != nil {
			t.Fatal(err)
		}
	}
	families, err := r.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	if err := testutil.GatherAndCompare(r, strings.NewReader("# HELP ovnkube_slb_unread_kinds "+families[0].GetHelp()+`
# TYPE ovnkube_slb_unread_kinds gauge
ovnkube_slb_unread_kinds{resource="nodes"} 1
ovnkube_slb_unread_kinds{resource="services"} 1
`)); err != nil {
		t.Error(err)
	}
	docs, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if row := "| `ovnkube_slb_unread_kinds` | gauge | `resource` | " + families[0].GetHelp() + " |\n"; !strings.Contains(
		string(docs), row) {
		t.Errorf("docs/metrics.md has no line %s", row)
	}
}
