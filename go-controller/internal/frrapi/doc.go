// SPDX-License-Identifier: Apache-2.0

// Package frrapi has the parts of the API of frr-k8s (frrk8s.metallb.io/v1beta1) that this project reads and writes, as
// plain values, converts them as frr-k8s does, and reads FRR's configuration text. The schema is that of frr-k8s
// v0.0.25.
//
// Invariants:
//   - Fields of a neighbor that are not known here are kept (Neighbor.Other): a neighbor that is repeated in another
//     object has them, too.
//   - A Converted has what frr-k8s v0.0.25 makes of an object by itself: Invalid is set if and only if its webhook
//     refuses the object alone. Whatever an object has, converting it takes time in proportion to its size.
//   - A Running lists a prefix for a neighbor only if FRR's configuration shows that FRR originates it and sends it to
//     that neighbor. What frr-k8s does not write, and may withhold prefixes, makes the neighbor's state unknown.
package frrapi
