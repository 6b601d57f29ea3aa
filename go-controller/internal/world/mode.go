// SPDX-License-Identifier: Apache-2.0

package world

import "fmt"

// Mode selects the dataplanes that are enabled.
type Mode uint8

// The modes. The zero value is the default.
const (
	Layer2AndBGP Mode = iota
	Layer2Only
	BGPOnly
	// Disabled disables both dataplanes and the assignment of new addresses.
	Disabled
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Disabled, Layer2Only, BGPOnly, Layer2AndBGP} }

// DefaultMode returns the mode of a cluster whose only setting is on or off.
func DefaultMode(on bool) Mode {
	if on {
		return Layer2AndBGP
	}
	return Disabled
}

// ParseMode parses a mode as String formats it. It returns false if text is not a mode.
func ParseMode(text string) (Mode, bool) {
	for _, m := range Modes() {
		if m.String() == text {
			return m, true
		}
	}
	return 0, false
}

// String returns the name of a mode as it appears in the API.
func (m Mode) String() string { return [...]string{"Layer2+BGP", "Layer2", "BGP", "Disabled"}[m] }

// Layer2 reports whether addresses are announced on layer 2 segments.
func (m Mode) Layer2() bool { return m == Layer2AndBGP || m == Layer2Only }

// BGP reports whether addresses are advertised to BGP peers.
func (m Mode) BGP() bool { return m == Layer2AndBGP || m == BGPOnly }

// ModeSetting is the selected mode and its source.
type ModeSetting struct {
	Mode Mode
	// By names the source of Mode, for messages.
	By string
	// Release withdraws the addresses that Services have while the mode is Disabled.
	Release bool
	// Refused is the reason why the latest setting was rejected (value and what is wrong), so that Mode is still that
	// of an earlier setting. It is empty if the latest setting was accepted.
	Refused string
}

// Off returns a message that what is disabled, with the mode and its source.
func (s *ModeSetting) Off(what string) string {
	return fmt.Sprintf("%s disabled: mode %s (%s)", what, s.Mode, s.By)
}
