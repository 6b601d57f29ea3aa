// SPDX-License-Identifier: Apache-2.0

// Package neighbour probes a segment for hosts that have an address, without claiming the address: probes
// change no neighbour cache. It also announces which host has an address.
package neighbour
