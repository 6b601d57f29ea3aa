// SPDX-License-Identifier: Apache-2.0

// Package controlplane builds, starts and stops a real Kubernetes control plane without containers: etcd, kube-apiserver and
// kube-controller-manager as processes on one machine, and kubectl to talk to them.
//
// Invariants:
//   - The programs are built once a machine from pinned sources into a cache directory; callers at the same time wait for one build.
//   - All that a control plane leaves is in its run directory: records of the processes, data, keys, logs, kubeconfigs. From that
//     directory alone it can be opened again ([Attach]) or ended, also when the program that started it is gone.
//   - Two control planes never share an address, a port or a socket.
//   - Authorization is Node and RBAC; identities are client certificates, so that a test may act as any user ([ControlPlane.Kubeconfig]).
//   - No kubelet, scheduler or cloud provider runs here, and of the controller manager only what turns Deployments into Pods and Pods
//     into EndpointSlices, clears up after deletions, and fills RBAC's aggregated roles.
package controlplane
