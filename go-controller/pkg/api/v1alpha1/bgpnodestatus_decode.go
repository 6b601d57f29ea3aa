// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// UnmarshalJSON decodes a BGPNodeStatus. If its status can't be decoded, it is empty: each node writes its own, API
// servers admit date-times that metav1.Time does not (strfmt.IsDateTime of kube-openapi, RFC 3339 section 5.6), and one
// such object must not keep those of other nodes from being read.
func (s *BGPNodeStatus) UnmarshalJSON(data []byte) error {
	type plain BGPNodeStatus // without this method
	var whole plain
	err := json.Unmarshal(data, &whole)
	if err == nil {
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
