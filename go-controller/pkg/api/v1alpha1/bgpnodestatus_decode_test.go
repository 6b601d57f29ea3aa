// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A status that the API server admits and that can't be decoded hides none of other nodes.
func TestUnreadableReportHidesNoOther(t *testing.T) {
	const good = `{"metadata":{"name":"n2"},"status":{"routerID":"10.0.0.2","stopTime":"2026-12-01T00:00:00Z"}}`
	for _, status := range []string{
		`{"routerID":"10.0.0.1","stopTime":"2026-12-01t00:00:00z"}`,
		`{"routerID":"10.0.0.1","sessions":[{"peer":"tor","since":"2026-12-01T00:00:00x5Z"}]}`,
		`{"routerID":"10.0.0.1","conditions":[{"type":"Ready","lastTransitionTime":"2026-12-01T00:00:00ZT"}]}`,
	} {
		var list BGPNodeStatusList
		text := fmt.Sprintf(`{"items":[{"metadata":{"name":"n1","uid":"u1"},"status":%s},%s]}`, status, good)
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Errorf("%s: %v", status, err)
			continue
		}
		bad, other := list.Items[0], list.Items[1]
		if bad.Name != "n1" || bad.UID != "u1" || bad.Status.RouterID != "" || bad.Status.StopTime != nil {
			t.Errorf("%s: %+v, want no status", status, bad)
		}
		if other.Name != "n2" || other.Status.RouterID != "10.0.0.2" || other.Status.StopTime == nil {
			t.Errorf("the report of the other node is %+v", other)
		}
	}
	var s BGPNodeStatus
	if err := json.Unmarshal([]byte(`{"metadata":{"name":7}}`), &s); err == nil {
		t.Error("an object without a readable name is decoded")
	}
	round := BGPNodeStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: BGPNodeStatusStatus{RouterID: "10.0.0.1"}}
	text, err := json.Marshal(round)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil || s.Name != round.Name || s.Status.RouterID != "10.0.0.1" {
		t.Errorf("%+v, %v", s, err)
	}
}
