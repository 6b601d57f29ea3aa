// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"regexp"
	"strings"
)

var macAddress = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)

// parseMAC returns a MAC address of 48 bits in lower case; empty if the text is none.
func parseMAC(text string) string {
	if mac := strings.ToLower(text); macAddress.MatchString(mac) {
		return mac
	}
	return ""
}

// parseHostMAC is like parseMAC, for the MAC address of one host: the I/G bit, the lowest one of the first byte, is not
// set (IEEE 802).
func parseHostMAC(text string) string {
	mac := parseMAC(text)
	if mac == "" || mac == "00:00:00:00:00:00" || !strings.Contains("02468ace", mac[1:2]) {
		return ""
	}
	return mac
}
