// SPDX-License-Identifier: Apache-2.0

// Package sdn tests the controller and the agents of OpenShift SDN together, on a real API server and real kernels in
// network namespaces. It needs root.
package sdn
