// SPDX-License-Identifier: Apache-2.0

// Package controlplane builds, starts and stops a real Kubernetes control plane without containers: etcd,
// kube-apiserver and kube-controller-manager as processes on one machine, and kubectl as their client.
//
// Invariants:
//   - The programs are built from pinned sources into a cache directory, once per machine. Concurrent callers wait for
//     one build.
//   - A control plane writes only in its run directory: records of the processes, data, keys, logs, kubeconfigs. With
//     that directory alone it can be opened again ([Attach]) or stopped, even if the program that started it has
//     exited.
//   - Two control planes never share an address, a port or a socket.
//   - Authorization is Node and RBAC. Identities are client certificates, so a test can act as any user
//     ([ControlPlane.Kubeconfig]).
//   - No kubelet, scheduler or cloud provider runs. The controller manager runs only the controllers that turn
//     Deployments into Pods and Pods into EndpointSlices, clean up after deletions, and aggregate RBAC roles.
package controlplane
