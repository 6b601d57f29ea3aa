// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
)

// TestStandbyAcquiresLeaseSoonAfterDatabaseReturns covers this sequence: the holder dies, and the standby lacks its
// database from one second before the lease expires until two seconds after. The standby acquires the lease soon after
// the database is back, not a lease duration later. It does not acquire the lease while it lacks the database.
func TestStandbyAcquiresLeaseSoonAfterDatabaseReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 15 * time.Second
		o := &options{leaderElect: true, leaseDuration: lease, renewDeadline: 10 * time.Second, retryPeriod: 2 * time.Second,
			databaseTimeout: 15 * time.Second}
		start, led := time.Now(), time.Duration(0)
		e := &election{options: o, config: &rest.Config{}, health: leaderelection.NewLeaderHealthzAdaptor(time.Minute),
			missing: func() error {
				if at := time.Since(start); at > lease-time.Second && at < lease+2*time.Second {
					return errors.New("northbound database: not connected")
				}
				return nil
			},
			work: func(ctx context.Context, _ *rest.Config, _ func() error) error {
				led = time.Since(start)
				<-ctx.Done()
				return nil
			}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := e.campaign(ctx, &paper{holder: "other"}); err != nil {
			t.Error(err)
		}
		if led < lease+2*time.Second || led > lease+8*time.Second {
			t.Errorf("led after %s, want soon after %s", led, lease+2*time.Second)
		}
	})
}
