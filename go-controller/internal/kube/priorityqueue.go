// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"math"
	"sync"
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

// jobLimits are the maximum numbers of writers that one namespace has for addresses and for conditions.
type jobLimits struct{ high, low int }

// job is a status to compare and write.
type job struct {
	key world.Key
	// address reports whether the write changes addresses, not only conditions.
	address bool
}

// jobQueue is a fair queue that counts the jobs of each namespace that were taken and are not done. The zero value is
// empty.
type jobQueue struct {
	fairQueue[job]
	busy map[string]int
}

// ready returns the number of jobs of namespaces with fewer writers than limit.
func (q *jobQueue) ready(limit int) int {
	n := q.length
	for namespace, busy := range q.busy {
		if busy >= limit {
			n -= len(q.waiting[namespace])
		}
	}
	return n
}

// take removes the next job of a namespace with fewer writers than limit. There must be one.
func (q *jobQueue) take(limit int) job {
	for q.busy[q.order[0]] >= limit {
		q.order = append(q.order[1:], q.order[0])
	}
	j := q.next()
	if q.busy == nil {
		q.busy = map[string]int{}
	}
	q.busy[j.key.Namespace]++
	return j
}

func (q *jobQueue) done(j job) {
	if q.busy[j.key.Namespace]--; q.busy[j.key.Namespace] == 0 {
		delete(q.busy, j.key.Namespace)
	}
}

// priorityQueue is the priority queue of a work queue: writes of addresses come first, and writes of conditions leave
// most writers free for them. Among either, namespaces take turns: one edit of a tenant may change the addresses of
// thousands of Services. The zero value is ready to use.
type priorityQueue struct {
	// mu guards the fields up to busy. The work queue calls all methods under its own lock, except for done.
	mu        sync.Mutex
	high, low jobQueue
	// sinceLow counts the jobs that were taken from high since the last one from low.
	sinceLow int
	// busy is the number of condition writes in progress.
	busy int
	// urgent is the number of address writes that are queued or in progress.
	urgent atomic.Int32
}

var _ workqueue.Queue[job] = (*priorityQueue)(nil)

// Touch is called for a job that is already queued.
func (q *priorityQueue) Touch(job) {}

// Push adds a job.
func (q *priorityQueue) Push(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.address {
		q.high.add(j.key.Namespace, j)
		q.urgent.Add(1)
	} else {
		q.low.add(j.key.Namespace, j)
	}
}

// Len returns the number of jobs that may be taken now.
func (q *priorityQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	high, low := q.ready(q.limits())
	return high + low
}

// limits returns the limits in force: half of the writers while a namespace that has fewer could take one, as a webhook
// may delay each write of another namespace by sendTimeout, and none otherwise. The limits alone therefore never make
// Len return 0, and their end has to wake no writer.
func (q *priorityQueue) limits() jobLimits {
	shared := jobLimits{high: writers / 2, low: slowWriters / 2}
	if high, low := q.ready(shared); high+low > 0 {
		return shared
	}
	return jobLimits{high: math.MaxInt, low: math.MaxInt}
}

// ready returns the number of jobs that may be taken with these limits.
func (q *priorityQueue) ready(l jobLimits) (high, low int) {
	return q.high.ready(l.high), max(0, min(q.low.ready(l.low), slowWriters-q.busy))
}

// Pop takes the next job.
func (q *priorityQueue) Pop() job {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.limits()
	high, low := q.ready(l)
	due := low > 0 && q.sinceLow >= slowShare-1 && q.busy < slowWritersBusy
	if high > 0 && !due {
		q.sinceLow++
		return q.high.take(l.high)
	}
	q.sinceLow = 0
	q.busy++
	return q.low.take(l.low)
}

// done is called for each job taken. The caller then immediately gets the next job from the queue, so no job waits for
// a sleeping writer.
func (q *priorityQueue) done(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.address {
		q.high.done(j)
		q.urgent.Add(-1)
	} else {
		q.low.done(j)
		q.busy--
	}
}
