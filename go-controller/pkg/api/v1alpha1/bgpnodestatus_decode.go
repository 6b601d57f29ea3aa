// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnmarshalJSON decodes a BGPNodeStatus. If its status can't be decoded, it is empty: each node writes its own, API
// servers admit date-times that metav1.Time does not (strfmt.IsDateTime of kube-openapi, RFC 3339 section 5.6), and one
// such object must not keep those of other nodes from being read. It is also empty if the controller could not write it
// back when it adds a condition: metav1.Time decodes some date-times that it encodes as none.
func (s *BGPNodeStatus) UnmarshalJSON(data []byte) error {
	type plain BGPNodeStatus // without this method
	var whole plain
	err := json.Unmarshal(data, &whole)
	if err == nil {
		if !whole.Status.isValidInUTC() {
			whole.Status = BGPNodeStatusStatus{}
		}
		*s = BGPNodeStatus(whole)
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return err
	}
	delete(fields, "status")
	rest, marshalErr := json.Marshal(fields)
	if marshalErr != nil {
		return err
	}
	whole = plain{}
	if err := json.Unmarshal(rest, &whole); err != nil {
		return err
	}
	*s = BGPNodeStatus(whole)
	return nil
}

// isValidInUTC reports whether all times are date-times in UTC as well, in which metav1.Time encodes them. Its zero
// value is encoded as null, which a condition may not have.
func (s *BGPNodeStatusStatus) isValidInUTC() bool {
	valid := func(t *metav1.Time) bool {
		return t == nil || t.UTC().Year() >= 0 && t.UTC().Year() <= 9999
	}
	return valid(s.StopTime) && !slices.ContainsFunc(s.Sessions, func(b BGPSession) bool {
		return !valid(b.Since) || !valid(b.LastErrorTime)
	}) && !slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool {
		return !valid(&c.LastTransitionTime) || c.LastTransitionTime.IsZero()
	})
}
