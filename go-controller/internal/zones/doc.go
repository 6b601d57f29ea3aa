// SPDX-License-Identifier: Apache-2.0

// Package zones is the dataplane of a cluster with interconnect, where each node has its own OVN databases: a zone. It
// publishes the plans of Services as ServicePlans, and observes what the agents of the nodes report in their Leases.
// The shards themselves are published in the statuses of L2Domains. Package zones/agent is the agent.
//
// Invariants:
//   - A ServicePlan contains everything that the zones must agree on about a Service, including the slots of backends.
//     A zone derives all rows from published objects and its own node.
//   - A failover needs nothing of this package: no API server, controller or agent.
//   - No published plan has an address or port that its Service has given up, also while the newest plan waits because
//     its namespace has changed too much.
//   - A Service counts as applied only when the zone of the active gateway of its address has reported so.
package zones
