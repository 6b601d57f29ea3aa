// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/dist"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
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

// The controller adds a condition to a report that has expired and writes it back. No time in the report may make the
// API server refuse that.
func TestReportIsValidWhenItIsWrittenBack(t *testing.T) {
	manifest, err := dist.CRDs.ReadFile("manifests/crds/slb.k8s.ovn.org_bgpnodestatuses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kind, err := crd.Parse(manifest)
	if err != nil {
		t.Fatal(err)
	}
	// object returns a text as the API server reads it, and whether it admits it.
	object := func(text []byte) (map[string]any, error) {
		obj := map[string]any{}
		if err := json.Unmarshal(text, &obj); err != nil {
			return nil, err
		}
		kind.Decode(obj, false)
		errs, _ := kind.Validate(nil, obj, false)
		return obj, errs.ToAggregate()
	}
	const condition = `{"conditions":[{"type":"Other","status":"True","reason":"Forged","message":"",` +
		`"lastTransitionTime":"%s"}]}`
	const session = `{"sessions":[{"peer":"tor","state":"Active","advertisedIPv4":0,"advertisedIPv6":0,"%s":"%s"}]}`
	const latest, earliest = "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z"
	for _, tt := range []struct {
		status string
		kept   bool
	}{
		{`{"stopTime":"9999-12-31T23:59:59-23:00"}`, false},
		{`{"stopTime":"0000-01-01T00:00:00+00:01"}`, false},
		{fmt.Sprintf(session, "since", "9999-12-31T23:59:59-00:01"), false},
		{fmt.Sprintf(session, "lastErrorTime", "0000-01-01T00:00:00+23:00"), false},
		{fmt.Sprintf(condition, "9999-12-31T23:59:59-23:00"), false},
		{fmt.Sprintf(condition, "0001-01-01T00:00:00Z"), false}, // the zero time, written as null
		{`{"stopTime":"0001-01-01T00:00:00Z"}`, true},
		{`{"stopTime":"` + latest + `"}`, true},
		{fmt.Sprintf(session, "since", earliest), true},
		{fmt.Sprintf(condition, latest), true},
	} {
		text := []byte(`{"apiVersion":"slb.k8s.ovn.org/v1alpha1","kind":"BGPNodeStatus","metadata":{"name":"n1"},"status":` +
			tt.status + `}`)
		if _, err := object(text); err != nil {
			t.Errorf("%s is not admitted: %v", tt.status, err)
		}
		var s BGPNodeStatus
		if err := json.Unmarshal(text, &s); err != nil {
			t.Errorf("%s: %v", tt.status, err)
			continue
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Errorf("%s: %v", tt.status, err)
			continue
		}
		if _, err := object(written); err != nil {
			t.Errorf("%s is refused when it is written back: %v", tt.status, err)
		}
		kept := s.Status.StopTime != nil || len(s.Status.Sessions)+len(s.Status.Conditions) > 0
		if kept != tt.kept || s.Name != "n1" {
			t.Errorf("%s is read as %+v", tt.status, s)
		}
	}
}
