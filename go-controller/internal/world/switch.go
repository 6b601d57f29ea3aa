// SPDX-License-Identifier: Apache-2.0

package world

import "fmt"

// Mode says which dataplanes work.
type Mode uint8

// The modes. The zero value is that of a cluster where nobody says otherwise.
const (
	Layer2AndBGP Mode = iota
	Layer2Only
	BGPOnly
	// Disabled gives no new addresses either.
	Disabled
)

// Modes are all there are.
func Modes() []Mode { return []Mode{Disabled, Layer2Only, BGPOnly, Layer2AndBGP} }

// DefaultMode is that of a cluster that is just switched on or off.
func DefaultMode(on bool) Mode {
	if on {
		return Layer2AndBGP
	}
	return Disabled
}

// ParseMode reads a mode as String spells it; false if it is none.
func ParseMode(text string) (Mode, bool) {
	for _, m := range Modes() {
		if m.String() == text {
			return m, true
		}
	}
	return 0, false
}

// String spells a mode as users do.
func (m Mode) String() string { return [...]string{"Layer2+BGP", "Layer2", "BGP", "Disabled"}[m] }

// Layer2 reports whether addresses are answered for on segments.
func (m Mode) Layer2() bool { return m == Layer2AndBGP || m == Layer2Only }

// BGP reports whether routers are told of addresses.
func (m Mode) BGP() bool { return m == Layer2AndBGP || m == BGPOnly }

// Switch says which dataplanes shall work, and who says so.
type Switch struct {
	Mode Mode
	// By is where that is said, for messages.
	By string
	// Release takes back what Services were given while the mode is Disabled.
	Release bool
	// Refused says why the newest word on the matter does not count (value, what is wrong),
	// so that Mode is still that of an earlier one; empty if it does.
	Refused string
}

// Off says that something is switched off, by whom.
func (s *Switch) Off(what string) string {
	return fmt.Sprintf("%s switched off: mode %s (%s)", what, s.Mode, s.By)
}
