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

// slowShare is how many jobs are taken for each condition that is written while addresses wait, by at most
// slowWritersBusy writers: a tenant can make addresses wait all the time, and what other Services have of
// spec.externalIPs is in a condition.
const slowShare, slowWritersBusy = 4, 2

// job is a status to compare and write.
type job struct {
	key world.Key
	// address reports whether the write changes addresses, not only conditions.
	address bool
}

// priorityQueue is the priority queue of a work queue: writes of addresses come first, and writes of conditions leave
// most writers free for them. Among either, namespaces take turns: one edit of a tenant may change the addresses of
// thousands of Services. The zero value is ready to use.
type priorityQueue struct {
	// high and low are used by the work queue, under its lock.
	high, low fairQueue[job]
	// sinceLow counts the jobs that were taken from high since the last one from low.
	sinceLow int
	// busy is the number of condition writes in progress.
	busy atomic.Int32
	// urgent is the number of address writes that are queued or in progress.
	urgent atomic.Int32
}

var _ workqueue.Queue[job] = (*priorityQueue)(nil)

// Touch is called for a job that is already queued.
func (q *priorityQueue) Touch(job) {}

// Push adds a job.
func (q *priorityQueue) Push(j job) {
	if j.address {
		q.high.add(j.key.Namespace, j)
		q.urgent.Add(1)
	} else {
		q.low.add(j.key.Namespace, j)
	}
}

// Len returns the number of jobs that may be taken now.
func (q *priorityQueue) Len() int {
	return q.high.length + max(0, min(q.low.length, slowWriters-int(q.busy.Load())))
}

// Pop takes the next job.
func (q *priorityQueue) Pop() job {
	due := q.low.length > 0 && q.sinceLow >= slowShare-1 && q.busy.Load() < slowWritersBusy
	if q.high.length > 0 && !due {
		q.sinceLow++
		return q.high.next()
	}
	q.sinceLow = 0
	q.busy.Add(1)
	return q.low.next()
}

// done is called for each job taken. The caller then immediately gets the next job from the queue, so no job waits for
// a sleeping writer.
func (q *priorityQueue) done(j job) {
	if j.address {
		q.urgent.Add(-1)
	} else {
		q.busy.Add(-1)
	}
}
