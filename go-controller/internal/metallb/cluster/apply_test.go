// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// The output of an import may be in the log of a pipeline.
func TestChangedPasswordsAreNotShown(t *testing.T) {
	got := changed(map[string]string{"spec.password": "old", "spec.myASN": "1"},
		map[string]string{"spec.password": "new", "spec.myASN": "1", "spec.peerPort": "179"})
	if want := "spec.password; spec.peerPort: 179, was unset"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
