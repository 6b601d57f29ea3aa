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

// lanes is the order of a work queue: writes of addresses go first, and writes of
// conditions leave most writers free for them. The zero value works.
type lanes struct {
	// Used by the work queue, under its lock.
	fast, slow []job
	// busy is the number of conditions that are being written.
	busy atomic.Int32
	// urgent is the number of addresses that wait or are being written.
	urgent atomic.Int32
}

var _ workqueue.Queue[job] = (*lanes)(nil)

// Touch is called for a job that waits already.
func (l *lanes) Touch(job) {}

// Push adds a job.
func (l *lanes) Push(j job) {
	if j.address {
		l.fast = append(l.fast, j)
		l.urgent.Add(1)
	} else {
		l.slow = append(l.slow, j)
	}
}

// Len is the number of jobs that may be taken now.
func (l *lanes) Len() int {
	return len(l.fast) + max(0, min(len(l.slow), slowWriters-int(l.busy.Load())))
}

// Pop takes the job whose turn it is.
func (l *lanes) Pop() job {
	lane := &l.fast
	if len(l.fast) == 0 {
		lane = &l.slow
		l.busy.Add(1)
	}
	j := (*lane)[0]
	*lane = (*lane)[1:]
	return j
}

// done is told of each job taken. Who tells asks the queue for the next job at once, so
// that none waits for a writer that sleeps.
func (l *lanes) done(j job) {
	if j.address {
		l.urgent.Add(-1)
	} else {
		l.busy.Add(-1)
	}
}
