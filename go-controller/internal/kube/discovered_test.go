// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"
)

// occupied is a controller that calls a function, which waits for a lock: client-go's HasSynced may wait for its end.
type occupied struct {
	cache.Controller
	freed, synced chan struct{}
}

func (o occupied) HasSynced() bool { <-o.freed; return true }

func (o occupied) HasSyncedChecker() cache.DoneChecker { return o }

func (occupied) Name() string { return "" }

func (o occupied) Done() <-chan struct{} { return o.synced }

// Who asks whether a kind has been read may hold the lock that the informer waits for.
func TestHasSyncedDoesNotWaitForTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := occupied{freed: make(chan struct{}), synced: make(chan struct{})}
		d := &discovered{}
		d.informer.Store(new(cache.Controller(o)))
		if d.hasSynced() {
			t.Error("the kind is read before the informer says so")
		}
		close(o.synced)
		if !d.hasSynced() {
			t.Error("the kind is not read, and the informer says so")
		}
	})
}
