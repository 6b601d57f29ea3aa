// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb"
)

const (
	// readTimeout is how long the controller may take to read an object. There may be no controller.
	readTimeout = 10 * time.Second
	readPoll    = 100 * time.Millisecond
)

// AwaitRead waits until the controller has read an object, which its status shows, for at most 10 s. It returns false
// if the status does not show it by then. The API server does not say in which order the controller receives objects of
// several kinds: from an address whose pool comes before its L2Domain the controller must infer that nothing has
// announced it.
func AwaitRead(ctx context.Context, client dynamic.Interface, o metallb.Object) (bool, error) {
	gvr, name := resourceOf(o)
	var failed error
	err := wait.PollUntilContextTimeout(ctx, readPoll, readTimeout, true, func(ctx context.Context) (bool, error) {
		u, err := client.Resource(gvr).Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			failed = fmt.Errorf("get %s: %w", name, err)
			return false, failed
		}
		return isRead(u), nil
	})
	switch {
	case failed != nil && ctx.Err() == nil && !wait.Interrupted(err):
		return false, failed
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return err == nil, nil
}

// isRead reports whether a condition is about the newest generation of an object.
func isRead(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions") // false if they are something else
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["observedGeneration"] == u.GetGeneration() {
			return true
		}
	}
	return false
}
