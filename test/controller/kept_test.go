// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os/exec"
	"sync/atomic"
	"testing"
	"time"
)

// backoff is the pause before a further life. The kubelet restarts a container immediately after its first exit, and
// waits longer and longer after further exits, up to five minutes. That would be longer than any wait of a test: on a
// machine on which the second life loses its lease, too, the third one would come too late.
const backoff = time.Second

// kept is an ovnkube-slb that is restarted whenever it ends, as by the kubelet.
type kept struct {
	*command
	lives atomic.Int32
}

// keep runs a process like command, and restarts it whenever it ends.
func (c *cluster) keep(t *testing.T, binary, name string, o *ovn, args ...string) *kept {
	t.Helper()
	k := &kept{command: c.command(t, binary, name, o, args...)}
	k.lives.Store(1)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		k.restart(t, name, stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return k
}

// restart restarts the command until stop is closed, and then kills it.
func (k *kept) restart(t *testing.T, name string, stop <-chan struct{}) {
	life, ended, wait := k.Cmd, k.ended, time.Duration(0)
	end := func() error { return k.result }
	for {
		select {
		case <-stop:
			_ = life.Process.Kill()
			<-ended
			return
		case <-ended:
		}
		t.Logf("life %d of %s ended: %v; the next begins in %s", k.lives.Load(), name, end(), wait)
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
		wait = backoff
		next := exec.Command(life.Path, life.Args[1:]...)
		next.Stdout, next.Stderr = life.Stdout, life.Stderr
		if err := next.Start(); err != nil {
			t.Errorf("start %s again: %v", name, err)
			return
		}
		done, result := make(chan struct{}), error(nil)
		go func() {
			result = next.Wait()
			close(done)
		}()
		life, ended, end = next, done, func() error { return result }
		k.lives.Add(1)
	}
}
