// SPDX-License-Identifier: Apache-2.0

// Package loop drives one dataplane towards the newest plans.
//
// Invariants:
//   - Only differences against what the dataplane last accepted are handed over; a plan
//     that changes and changes back in between hands over nothing.
//   - All differences that there are are handed over together, and repetitions in batches.
//   - A key that fails is tried again for ever, with a pause of 50 ms that doubles up to a
//     minute, and holds up no other key.
//   - Everything is handed over again and pruned after the first plans, on Resync and every
//     hour; changes go before repetitions.
//   - Nothing is pruned before a full set of plans was seen.
package loop
