// SPDX-License-Identifier: Apache-2.0

package convert

import "net" //nolint:depguard // ParseMAC has no effects.

// parseMAC returns a MAC address of 48 bits as net.HardwareAddr formats it, in lower case; empty if the text is none.
func parseMAC(text string) string {
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		return ""
	}
	return mac.String()
}
