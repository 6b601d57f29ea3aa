// SPDX-License-Identifier: Apache-2.0

package main

// policyName is the name of the policy and of its binding.
const policyName = "ippool-overlap.slb.k8s.ovn.org"

// excused is true if one entry of exclude of either pool contains the intersection of x and y.
func excused() string {
	return expand(`
variables.excluded.exists(o, ($fo <= $fx || $fo <= $fy) && ($lx <= $lo || $ly <= $lo))`,
		"fo", first("o"), "lo", last("o"), "fx", first("x"), "lx", last("x"), "fy", first("y"), "ly", last("y"))
}

// writePolicy writes the policy that refuses a pool with addresses of another pool. The kind of
// its parameters is the pool itself and the binding selects all of them, so that it is
// evaluated once for each existing pool.
//
// The policy gives early feedback; the controller decides. Overlapping pools pass the policy when they are created at
// the same moment, and while the API server has not loaded the parameters: for some seconds after the installation,
// during which failurePolicy Fail would refuse every pool, the first one included. Ignore accepts them. Of overlapping
// pools the controller uses the addresses of the oldest, and reports the others in their condition Accepted.
func writePolicy(path string) error {
	const group = "slb.k8s.ovn.org"
	policy := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       "ValidatingAdmissionPolicy",
		"metadata":   map[string]any{"name": policyName},
		"spec": map[string]any{
			"failurePolicy": "Ignore",
			"paramKind":     map[string]any{"apiVersion": group + "/v1alpha1", "kind": "IPAddressPool"},
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{"v1alpha1"}, "resources": []any{"ipaddresspools"},
				"operations": []any{"CREATE", "UPDATE"},
			}}},
			// Labels and finalizers of a pool can be changed whatever it overlaps.
			"matchConditions": []any{map[string]any{
				"name":       "addresses-change",
				"expression": "oldObject == null || object.spec != oldObject.spec",
			}},
			"variables": []any{
				variable("mine", entries("object.spec.?addresses.orValue([])")),
				variable("theirs", entries("params.spec.?addresses.orValue([])")),
				variable("excluded", "("+entries("object.spec.?exclude.orValue([])")+")\n+ ("+
					entries("params.spec.?exclude.orValue([])")+")"),
				variable("shared", expand(`
object.metadata.name == params.metadata.name ? []
: variables.mine.map(x, variables.theirs.filter(y, $overlap && !$excused).map(y, $x + ' overlaps ' + $y))
    .filter(l, size(l) > 0).map(l, l[0])`,
					"overlap", overlap("x", "y"), "excused", excused(), "x", written("x"), "y", written("y"))),
			},
			"validations": []any{map[string]any{
				"expression": "size(variables.shared) == 0",
				"message":    "the pool has addresses of another pool",
				"messageExpression": "'spec.addresses: ' + " + someOf("variables.shared") +
					" + ' of IPAddressPool ' + params.metadata.name",
				"reason": "Invalid",
			}},
		},
	}
	binding := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       "ValidatingAdmissionPolicyBinding",
		"metadata":   map[string]any{"name": policyName},
		"spec": map[string]any{
			"policyName":        policyName,
			"paramRef":          map[string]any{"selector": map[string]any{}, "parameterNotFoundAction": "Allow"},
			"validationActions": []any{"Deny"},
		},
	}
	return write(path, policy, binding)
}

// someOf joins the first three of a list of texts: messages beyond 5 kB are dropped as a whole.
func someOf(list string) string {
	return expand(`(size($l) > 3 ? [$l[0], $l[1], $l[2], '...'] : $l).join(', ')`, "l", list)
}

func variable(name, expression string) map[string]any {
	return map[string]any{"name": name, "expression": expression}
}
