// SPDX-License-Identifier: Apache-2.0

package world

// LabelServiceProxyName is the label of Services that a service proxy other than the default one serves (KEP-2447). Its
// value is the name of that proxy. It counts with any value, also an empty one.
const LabelServiceProxyName = "service.kubernetes.io/service-proxy-name"

// OtherProxy reports whether another service proxy serves the Service: kube-proxy and OVN-Kubernetes behave as if it
// did not exist. Then no dataplane of ours serves it, either, but it keeps its addresses.
func (s *Service) OtherProxy() bool {
	_, labelled := s.Labels[LabelServiceProxyName]
	return labelled
}
