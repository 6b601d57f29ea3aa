// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ovn-org/libovsdb/ovsdb"
	"k8s.io/klog/v2"
)

// maxChanges limits the size of a transaction, so that northd and other clients are not blocked for long.
const maxChanges = 400

// opsFunc adds the changes that one object needs to a batch, computed from the database at that time. It is called
// again after a failure.
type opsFunc func(*batch) error

// abortedError is an error that left a transaction without effect. A smaller transaction may succeed.
type abortedError struct{ error }

func (e abortedError) Unwrap() error { return e.error }

// fenced is an error because of which nothing was sent and nothing further will be.
type fenced struct{ error }

func (f fenced) Unwrap() error { return f.error }

// commit applies functions in order, many per transaction, and returns an error for each. If a transaction is refused,
// its functions are retried in halves, so that one whose changes are invalid fails alone. d.mu must be held.
func (d *Dataplane) commit(ctx context.Context, opsFuncs []opsFunc) []error {
	return d.commitAs(ctx, opsFuncs, d.numbers(d.builder))
}

// commitAs is like commit, for transactions with or without a number. Without one d.mu need not be held: two
// transactions at the same time would have the same number, and a Service would count as translated too early.
func (d *Dataplane) commitAs(ctx context.Context, opsFuncs []opsFunc, numbered bool) []error {
	errs := make([]error, len(opsFuncs))
	for start := 0; start < len(opsFuncs); {
		n, err := d.transact(ctx, opsFuncs[start:], numbered)
		these := errs[start : start+n]
		if half := n / 2; half > 0 && errors.As(err, new(abortedError)) {
			copy(these, d.commitAs(ctx, opsFuncs[start:start+half], numbered))
			copy(these[half:], d.commitAs(ctx, opsFuncs[start+half:start+n], numbered))
		} else {
			if errors.As(err, new(fenced)) {
				n, these = len(opsFuncs)-start, errs[start:]
			}
			for i := range these {
				these[i] = err
			}
		}
		start += n
	}
	return errs
}

// transact commits the changes of as many functions as fit into one transaction. It returns their number, which is at
// least one.
func (d *Dataplane) transact(ctx context.Context, opsFuncs []opsFunc, numbered bool) (n int, err error) {
	c, v, err := d.nb.current()
	if err != nil {
		return len(opsFuncs), err
	}
	b := newBatch(v)
	for n < len(opsFuncs) && (n == 0 || b.size() < maxChanges) {
		err := opsFuncs[n](b)
		switch {
		case err != nil && n == 0:
			return 1, abortedError{err}
		case err != nil: // changes that the failed function left in the batch must not be written
			return d.transact(ctx, opsFuncs[:n], numbered)
		}
		n++
	}
	if b.size() == 0 {
		return n, nil
	}
	var number uint64
	if numbered {
		number = d.revisions.next(v)
		if err := b.number(number); err != nil {
			return n, err
		}
	}
	ops := b.operations()
	if err := cmp.Or(d.fence(), d.checkZone(v)); err != nil {
		return n, fenced{fmt.Errorf("northbound transaction is not sent: %w", err)}
	}
	err = send(ctx, c, ops)
	d.transacted(err)
	if err != nil {
		return n, err
	}
	d.revisions.record(number) // 0 changes nothing
	klog.FromContext(ctx).V(3).Info("Wrote to the northbound database", "operations", len(ops))
	return n, nil
}

// send sends one transaction. A refused transaction has no effect. If the connection ends first, the next connection
// shows whether it took effect.
func send(ctx context.Context, c *connection, ops []ovsdb.Operation) error {
	results, err := c.transact(ctx, ops)
	if err != nil {
		return fmt.Errorf("northbound transaction: %w", err)
	}
	if err := abortReason(results, ops); err != nil {
		return abortedError{fmt.Errorf("northbound transaction: %w", err)}
	}
	return nil
}

// abortReason returns the reason why the server aborted a transaction, or nil.
func abortReason(results []ovsdb.OperationResult, ops []ovsdb.Operation) error {
	refused, err := ovsdb.CheckOperationResults(results, ops)
	if len(refused) > 0 {
		err = refused[0] // the server executes no operation after it
	}
	if late := (*ovsdb.TimedOut)(nil); errors.As(err, &late) {
		if parent := awaitedParent(late.Operation()); parent != "" {
			return fmt.Errorf("%s is not in the database: %w", parent, err)
		}
		return fmt.Errorf("the rows have changed, or another client has a row of the same name: %w", err)
	}
	return err
}
