// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A Service that changes all the time has no more Events than the limit allows, and finally one about its last state.
func TestLastEventOfAFlappingServiceIsWritten(t *testing.T) {
	const flaps = 4 * limitBurst
	s := &sink{}
	runEvents(t, s, func() bool { return false }, func(e *Events) {
		about := &corev1.ObjectReference{Kind: "Service", Namespace: "shop", Name: "web", UID: "web"}
		for i := range flaps {
			kind := []string{corev1.EventTypeNormal, corev1.EventTypeWarning}[i%2]
			e.queue.add(event{about, kind, "Reason", fmt.Sprint("state ", i)})
			<-time.After(time.Second)
		}
		<-time.After(time.Hour)
		got := s.messages()
		if last := fmt.Sprint("state ", flaps-1); len(got) != 2*limitBurst+1 || !strings.HasSuffix(got[len(got)-1], last) {
			t.Errorf("%d Events, the last is %q; want %d and %q", len(got), got[len(got)-1], 2*limitBurst+1, last)
		}
	})
}
