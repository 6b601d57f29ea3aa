// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// slowWriters is the maximum number of writers that write conditions at the same time. A failover rewrites the
// conditions of thousands of Services, which must not delay other requests at the API server.
const slowWriters = 4

// job is a status to compare and write.
type job struct {
	key world.Key
	// address reports whether the write changes addresses, not only conditions.
	address bool
}

// priorityQueue is the priority queue of a work queue: writes of addresses come first, and writes of conditions leave
// most writers free for them. The zero value is ready to use.
type priorityQueue struct {
	// high and slow are used by the work queue, under its lock.
	high, low []job
	// busy is the number of condition writes in progress.
	busy atomic.Int32
	// urgent is the number of address writes that are queued or in progress.
	urgent atomic.Int32
}

var _ workqueue.Queue[job] = (*priorityQueue)(nil)

// Touch is called for a job that is already queued.
func (l *priorityQueue) Touch(job) {}

// Push adds a job.
func (l *priorityQueue) Push(j job) {
	if j.address {
		l.high = append(l.high, j)
		l.urgent.Add(1)
	} else {
		l.low = append(l.low, j)
	}
}

// Len returns the number of jobs that may be taken now.
func (l *priorityQueue) Len() int {
	return len(l.high) + max(0, min(len(l.low), slowWriters-int(l.busy.Load())))
}

// Pop takes the next job.
func (l *priorityQueue) Pop() job {
	lane := &l.high
	if len(l.high) == 0 {
		lane = &l.low
		l.busy.Add(1)
	}
	j := (*lane)[0]
	*lane = (*lane)[1:]
	return j
}

// done is called for each job taken. The caller then immediately gets the next job from the queue, so no job waits for
// a sleeping writer.
func (l *priorityQueue) done(j job) {
	if j.address {
		l.urgent.Add(-1)
	} else {
		l.busy.Add(-1)
	}
}
