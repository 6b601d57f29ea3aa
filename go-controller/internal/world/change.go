// SPDX-License-Identifier: Apache-2.0

package world

// Change is the change of one Service since the last pass.
type Change struct {
	// Was and Is are the Service before and now. They are nil if it did not exist or was not ours.
	Was, Is *Service
	// SpecChanged means that the user edited spec, labels or annotations. Otherwise only endpoints or the status differ.
	SpecChanged bool
}
