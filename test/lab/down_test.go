// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

func TestDownAfterACrash(t *testing.T) {
	contract.Test(t)
	if err := Preflight(); err != nil {
		t.Skip(err)
	}
	links := rootLinks(t)
	l, err := Up(t.Context(), Config{Name: labName("crash"), Nodes: 1, Binary: command})
	if err != nil {
		t.Fatal(err)
	}
	// A daemon without a record. The records of all others are removed as well.
	stray, err := proc.Start(t.Context(), proc.Spec{Name: "stray", Dir: t.TempDir(), Netns: l.Netns("n1"),
		Args: []string{"tail", "-f", "/dev/null"}})
	if err != nil {
		t.Fatal(err)
	}
	running, err := proc.Load(l.Dir)
	if err != nil || len(running) < 10 {
		t.Fatalf("processes of the lab: %v, %v", running, err)
	}
	removeRecords(t, l.Dir)
	for range 2 { // The second call has nothing to do.
		if err := Down(t.Context(), Config{Name: labName("crash")}); err != nil {
			t.Fatal(err)
		}
	}
	// A killed process leaves its namespace, and is no longer a stray, some time before the kernel has released all of its
	// resources.
	for _, p := range append(running, stray) {
		if err := p.Wait(await.Context(t)); err != nil {
			t.Error(err)
		}
	}
	requireGone(t, l, links)
}

func removeRecords(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && (filepath.Ext(path) == ".proc" || filepath.Base(path) == stateFile) {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFailedUpLeavesNothing(t *testing.T) {
	contract.Test(t)
	if err := Preflight(); err != nil {
		t.Skip(err)
	}
	links := rootLinks(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Up(ctx, Config{Name: labName("fails"), NoKube: true, Binary: command})
	if err == nil {
		t.Fatal("Up with a cancelled context succeeded")
	}
	requireGone(t, newLab(Config{Name: labName("fails"), Dir: DefaultDir}, state{}), links)
}
