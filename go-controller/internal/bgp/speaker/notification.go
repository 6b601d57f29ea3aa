// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Codes and subcodes of NOTIFICATIONs that gobgp has no names for.
const (
	// bfdDownSubcode is the subcode of a Cease when BFD is down (RFC 9384).
	bfdDownSubcode = 10
	// roleMismatchSubcode is the subcode of an OPEN Message Error of RFC 9234.
	roleMismatchSubcode = 11
	// sendHoldTimerCode is the code of RFC 9687.
	sendHoldTimerCode = 8
)

// receivedNotification is a NOTIFICATION received from the router (RFC 4271 section 4.5).
type receivedNotification struct {
	code, subcode uint8
	data          []byte
	// extended means that the router's OPEN has extended optional parameters.
	extended bool
}

// Error returns the names of code and subcode, what the data says about them, and what to check.
func (n *receivedNotification) Error() string { return "received notification: " + n.describe() }

func (n *receivedNotification) describe() string {
	text := notificationName(n.code, n.subcode)
	switch {
	case n.code == packet.BGP_ERROR_OPEN_MESSAGE_ERROR && n.subcode == packet.BGP_ERROR_SUB_BAD_PEER_AS:
		text += ": check the AS numbers on both sides"
	case n.code == packet.BGP_ERROR_OPEN_MESSAGE_ERROR && n.subcode == roleMismatchSubcode:
		text += ": the peer requires BGP roles (RFC 9234), which nodes do not support"
	case n.code == packet.BGP_ERROR_OPEN_MESSAGE_ERROR && n.subcode == 0 && n.extended: // FRR, at least up to 10.
		text += ": the peer has extended optional parameters (RFC 9072) switched on, and seems to refuse the OPEN message " +
			"of a node because it has none"
	case n.code != packet.BGP_ERROR_CEASE:
	case n.subcode == packet.BGP_ERROR_SUB_MAXIMUM_NUMBER_OF_PREFIXES_REACHED:
		text += prefixLimit(n.data)
	case n.subcode == packet.BGP_ERROR_SUB_ADMINISTRATIVE_SHUTDOWN,
		n.subcode == packet.BGP_ERROR_SUB_ADMINISTRATIVE_RESET:
		text += communication(n.data)
	case n.subcode == packet.BGP_ERROR_SUB_PEER_DECONFIGURED:
		text += ": check that this node is configured as a neighbor"
	case n.subcode == packet.BGP_ERROR_SUB_HARD_RESET && len(n.data) >= 2: // RFC 8538 section 3.1.
		if inner := n.unwrap(); inner.subcode != packet.BGP_ERROR_SUB_HARD_RESET {
			text += ": " + inner.describe()
		}
	}
	return text
}

// unwrap returns the NOTIFICATION in the data of a hard reset.
func (n *receivedNotification) unwrap() *receivedNotification {
	return &receivedNotification{code: n.data[0], subcode: n.data[1], data: n.data[2:]}
}

// reason returns the NOTIFICATION as the reason of the end of a session. Its cause stands if it is the configuration of
// the router or an administrator.
func (n *receivedNotification) reason() reason {
	why := reason{text: n.Error(), kind: transient, about: v1alpha1.BGPErrorNotification}
	switch n.code {
	case packet.BGP_ERROR_OPEN_MESSAGE_ERROR:
		why.kind = standing
		if n.subcode == packet.BGP_ERROR_SUB_BAD_PEER_AS {
			why.about = v1alpha1.BGPErrorWrongASN
		}
	case packet.BGP_ERROR_CEASE:
		switch n.subcode {
		case bfdDownSubcode:
			why.about = v1alpha1.BGPErrorBFDDown
		case packet.BGP_ERROR_SUB_HARD_RESET:
			if len(n.data) >= 2 && n.data[1] != packet.BGP_ERROR_SUB_HARD_RESET {
				inner := n.unwrap().reason()
				why.kind, why.about = inner.kind, inner.about
			}
		case packet.BGP_ERROR_SUB_MAXIMUM_NUMBER_OF_PREFIXES_REACHED, packet.BGP_ERROR_SUB_ADMINISTRATIVE_SHUTDOWN,
			packet.BGP_ERROR_SUB_PEER_DECONFIGURED:
			why.kind = standing
		}
	}
	return why
}

// notificationName returns the names of a code and a subcode.
func notificationName(code, subcode uint8) string {
	name := packet.NewNotificationErrorCode(code, subcode).String()
	for _, unnamed := range []struct {
		code, subcode uint8
		name          string
	}{
		{packet.BGP_ERROR_CEASE, packet.BGP_ERROR_SUB_HARD_RESET, "hard reset"},
		{packet.BGP_ERROR_CEASE, bfdDownSubcode, "bfd down"},
		{packet.BGP_ERROR_OPEN_MESSAGE_ERROR, roleMismatchSubcode, "role mismatch"},
	} {
		if code == unnamed.code && subcode == unnamed.subcode {
			return strings.Replace(name, "undefined", unnamed.name, 1)
		}
	}
	if code == sendHoldTimerCode {
		return strings.Replace(name, "undefined", "send hold timer expired", 1)
	}
	return name
}

// prefixLimit returns the limit in the data of a Cease (RFC 4486 section 4): AFI, SAFI, number of prefixes.
func prefixLimit(data []byte) string {
	if len(data) != 7 {
		return ""
	}
	family := packet.AfiSafiToRouteFamily(binary.BigEndian.Uint16(data), data[2])
	return fmt.Sprintf(": the limit is %d of %s", binary.BigEndian.Uint32(data[3:]), family)
}

// communication returns the shutdown communication (RFC 9003 section 2), which is UTF-8 text of at most 255 bytes that
// an operator of the router wrote. Nothing that a terminal interprets remains. Malformed ones are ignored.
func communication(data []byte) string {
	if len(data) == 0 || len(data) < 1+int(data[0]) {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, strings.ToValidUTF8(string(data[1:1+int(data[0])]), "\uFFFD"))
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return ""
	}
	return `: "` + text + `"`
}
