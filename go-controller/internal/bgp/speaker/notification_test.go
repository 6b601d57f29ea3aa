// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func TestReceivedNotification(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, c := range []struct {
		name          string
		code, subcode uint8
		data          string
		want          string
		kind          reasonKind
	}{
		{"shutdown with a message", 6, 2, "\x1eswitch upgrade until 05:00 UTC",
			`code 6(cease) subcode 2(administrative shutdown): "switch upgrade until 05:00 UTC"`, standing},
		{"reset with a message", 6, 4, "\x03new", `code 6(cease) subcode 4(administrative reset): "new"`, transient},
		{"the longest message", 6, 2, "\xff" + long,
			`code 6(cease) subcode 2(administrative shutdown): "` + long + `"`, standing},
		{"a message of several scripts", 6, 2, "\x09caf\u00e9 \u5e97",
			"code 6(cease) subcode 2(administrative shutdown): \"caf\u00e9 \u5e97\"", standing},
		{"a message for a terminal", 6, 2, "\x0ea\x1b[31m\r\nb\u202ec\x00",
			`code 6(cease) subcode 2(administrative shutdown): "a[31m bc"`, standing},
		{"a message that is not UTF-8", 6, 2, "\x03a\xffb",
			"code 6(cease) subcode 2(administrative shutdown): \"a\uFFFDb\"", standing},
		{"an empty message", 6, 2, "\x00", "code 6(cease) subcode 2(administrative shutdown)", standing},
		{"a message without letters", 6, 2, "\x02\n\a", "code 6(cease) subcode 2(administrative shutdown)", standing},
		{"a message that is too short", 6, 2, "\x05abc", "code 6(cease) subcode 2(administrative shutdown)", standing},
		{"prefixes", 6, 1, "\x00\x01\x01\x00\x00\x00\x02",
			"code 6(cease) subcode 1(maximum number of prefixes reached): the limit is 2 of ipv4-unicast", standing},
		{"prefixes without data", 6, 1, "", "code 6(cease) subcode 1(maximum number of prefixes reached)", standing},
		{"deconfigured", 6, 3, "", "code 6(cease) subcode 3(peer deconfigured): check that this node is configured as a " +
			"neighbor", standing},
		{"hard reset", 6, 9, "\x06\x02\x02hi",
			`code 6(cease) subcode 9(hard reset): code 6(cease) subcode 2(administrative shutdown): "hi"`, standing},
		{"hard reset for a reset", 6, 9, "\x06\x04",
			"code 6(cease) subcode 9(hard reset): code 6(cease) subcode 4(administrative reset)", transient},
		{"hard reset in a hard reset", 6, 9, "\x06\x09\x06\x09", "code 6(cease) subcode 9(hard reset)", transient},
		{"hard reset without data", 6, 9, "\x06", "code 6(cease) subcode 9(hard reset)", transient},
		{"BFD", 6, 10, "", "code 6(cease) subcode 10(bfd down)", transient},
		{"AS number", 2, 2, "", "code 2(open) subcode 2(bad peer as): check the AS numbers on both sides", standing},
		{"role", 2, 11, "", "code 2(open) subcode 11(role mismatch): the peer requires BGP roles (RFC 9234), which nodes " +
			"do not support", standing},
		{"send hold timer", 8, 0, "", "code 8(send hold timer expired) subcode 0(undefined)", transient},
		{"unknown", 99, 3, "data", "code 99(undefined) subcode 3(undefined)", transient},
	} {
		n := &receivedNotification{code: c.code, subcode: c.subcode, data: []byte(c.data)}
		about := v1alpha1.BGPErrorNotification
		switch c.name {
		case "BFD":
			about = v1alpha1.BGPErrorBFDDown
		case "AS number":
			about = v1alpha1.BGPErrorWrongASN
		}
		want := reason{text: "received notification: " + c.want, kind: c.kind, about: about}
		if got := n.reason(); got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}
