// SPDX-License-Identifier: Apache-2.0

package apiserver

import "fmt"

// contractCRD is a CustomResourceDefinition with the fields of Cluster API's contract for address management that a
// consumer needs, as strict about them as Cluster API's own.
const contractCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.ipam.cluster.x-k8s.io}
spec:
  group: ipam.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[2]s, singular: %[2]s}
  versions:
  - name: %[1]s
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec: {type: object, required: [%[4]s], properties: {%[5]s}}
          status:
            type: object
            properties:
              addressRef: {type: object, required: [name], properties: {name: {type: string}}}
              conditions:
                type: array
                items:
                  type: object
                  required: [type, status, lastTransitionTime%[6]s]
                  properties: {type: {type: string}, status: {type: string}, reason: {type: string},
                    message: {type: string}, severity: {type: string},
                    lastTransitionTime: {type: string, format: date-time}}
`

// ContractKinds returns the kinds of Cluster API's contract in a version: v1beta1 or v1beta2.
func ContractKinds(version string) (Kinds, error) {
	const pool = "poolRef: {type: object, required: [kind, name, apiGroup], properties: {apiGroup: {type: string, " +
		"minLength: 1}, kind: {type: string, minLength: 1, maxLength: 63}, name: {type: string, minLength: 1, " +
		"maxLength: 253}}}"
	const claim = "claimRef: {type: object, required: [name], properties: {name: {type: string}}}"
	const address = "address: {type: string, minLength: 1, maxLength: 39}, prefix: {type: integer}, " +
		"gateway: {type: string, minLength: 1}"
	reason := ""
	if version == "v1beta2" {
		reason = ", reason, message"
	}
	var kinds Kinds
	for _, k := range []struct{ resource, kind, required, fields string }{
		{"ipaddressclaims", "IPAddressClaim", "poolRef", pool},
		{"ipaddresses", "IPAddress", "claimRef, poolRef, address, prefix", claim + ", " + pool + ", " + address},
	} {
		kind, err := customKind(fmt.Appendf(nil, contractCRD, version, k.resource, k.kind, k.required, k.fields, reason))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.resource, err)
		}
		kind.HasStatus = k.kind == "IPAddressClaim"
		kinds = append(kinds, kind)
	}
	return kinds, nil
}
