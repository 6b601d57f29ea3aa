// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// slowWriters is how many of the writers may be busy with conditions at a time: a
// failover rewrites those of thousands of Services, and takes the API server's time from
// nobody.
const slowWriters = 4

// job is a status to compare and write.
type job struct {
	key world.Key
	// address: the write changes addresses, and not conditions only.
	address bool
}

// priorityQueue is the order of a work queue: writes of addresses go first, and writes of
// conditions leave most writers free for them. The zero value works.
type priorityQueue struct {
	// Used by the work queue, under its lock.
	high, low []job
	// busy is the number of conditions that are being written.
	busy atomic.Int32
	// urgent is the number of addresses that wait or are being written.
	urgent atomic.Int32
}

var _ workqueue.Queue[job] = (*priorityQueue)(nil)

// Touch is called for a job that waits already.
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

// Len is the number of jobs that may be taken now.
func (l *priorityQueue) Len() int {
	return len(l.high) + max(0, min(len(l.low), slowWriters-int(l.busy.Load())))
}

// Pop takes the job whose turn it is.
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

// done is told of each job taken. Who tells asks the queue for the next job at once, so
// that none waits for a writer that sleeps.
func (l *priorityQueue) done(j job) {
	if j.address {
		l.urgent.Add(-1)
	} else {
		l.busy.Add(-1)
	}
}
