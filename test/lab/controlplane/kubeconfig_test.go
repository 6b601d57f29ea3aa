// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// Programs of one account are started one after the other. Each start writes the file that an earlier program may be
// reading.
func TestKubeconfigIsReplacedAtomically(t *testing.T) {
	dir := t.TempDir()
	a, err := openAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	path, err := writeKubeconfig(dir, a, "https://127.0.0.1:1", "account", nil)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		for range 300 {
			if _, err := writeKubeconfig(dir, a, "https://127.0.0.1:1", "account", nil); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for {
		config, err := clientcmd.LoadFromFile(path)
		if err != nil || len(config.Clusters) != 1 {
			t.Fatalf("read while it was written: %v, %+v", err, config)
		}
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}
