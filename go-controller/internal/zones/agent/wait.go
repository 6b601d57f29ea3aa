// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// waitInterval is the time between two checks of what the agent waits for.
	waitInterval = time.Second
	// readTimeout limits reading the Lease.
	readTimeout = 5 * time.Second
)

// wait waits until everything that the agent needs has been read: published objects, the cluster's identity and the
// databases of the zone. It returns false if ctx is done first.
func (a *Agent) wait(ctx context.Context) bool {
	waiting, stop := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() { a.reportWhileWaiting(waiting) })
	defer reporting.Wait()
	defer stop()
	for _, c := range a.informers {
		if !kube.WaitForInformer(ctx, c) {
			return false
		}
	}
	var known bool
	if a.clusterID, known = kube.AwaitClusterID(ctx, a.options.Kube); !known {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-a.dataplane.Synced():
		return true
	}
}

// unreadObjects returns which published objects have not been read yet, or nil.
func (a *Agent) unreadObjects() error {
	unread := kube.Unread(a.informers)
	if len(unread) == 0 {
		return nil
	}
	return fmt.Errorf("%s have not been read yet", strings.Join(unread, ", "))
}

// reportWhileWaiting reports a problem that lasts although the agent has observed nothing yet, until ctx is done. The
// guard in the same process renews the Lease, and with it the report of the last agent, which would be taken for
// current. Until a problem lasts that report stays: a restart must not move shards.
func (a *Agent) reportWhileWaiting(ctx context.Context) {
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	var reported string
	for {
		problem, unwritable, byNorthd := a.problem(a.unreadObjects())
		if problem+unwritable != reported {
			switch err := a.amendLastReport(ctx, problem, unwritable, byNorthd); {
			case err == nil:
				reported = problem + unwritable
			case ctx.Err() == nil:
				klog.ErrorS(err, "Waiting for the API server")
				a.problems = problems{} // objects can be read only from when the API server can be reached
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// amendLastReport reports what the last agent of the node reported, with another problem. What OVN does is unknown
// while the databases can't be read, and the claims of a gateway that can't be changed must not get lost.
func (a *Agent) amendLastReport(ctx context.Context, problem, unwritable string, byNorthd bool) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	leases, err := a.options.Kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, a.options.Node).String()})
	if err != nil {
		return fmt.Errorf("read Lease %s: %w", a.options.Node, err)
	}
	for i := range leases.Items {
		last := convert.ReadReport(&leases.Items[i]).Zone
		if leases.Items[i].Name != a.options.Node || last == nil {
			continue
		}
		last.Problem, last.Unwritable, last.Northd, last.Contested = problem, unwritable, byNorthd, nil
		text, err := convert.ZoneReport(last)
		if err != nil {
			return err
		}
		a.options.Report.ReportAtOnce(v1alpha1.AnnotationZone, text, problem+unwritable != "" || len(last.Claims) > 0)
	}
	return nil
}
