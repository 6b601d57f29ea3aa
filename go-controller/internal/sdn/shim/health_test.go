// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What an agent answers becomes part of conditions and Events. Its length is limited, even if the agent is not ours.
func TestTextOfAgentIsLimited(t *testing.T) { synctest.Test(t, testTextOfAgentIsLimited) }

func testTextOfAgentIsLimited(t *testing.T) {
	const most = 256
	long := strings.Repeat("ä", 1_000)
	limited := func(what, got, want string) {
		t.Helper()
		if len(got) > most || !utf8.ValidString(got) || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %d bytes %.300q, want %q and at most %d", what, len(got), got, want, most)
		}
	}
	n := newNetwork()
	a, dial := startAgent(t, n), dialer(n.dial)
	// The first rune begins at an odd byte, so that a rune begins before the limit and ends after it.
	for _, text := range []string{"x" + long, "x" + strings.Repeat("\xff", 500)} {
		a.unfit = status.Error(codes.FailedPrecondition, text)
		pulse, why, _ := dial.ask(t.Context(), a.at)
		if pulse != unfit {
			t.Errorf("heartbeat %v, want %v", pulse, unfit)
		}
		limited("reason of a node", why, "x")
	}

	a.failed = map[netip.Addr]string{vip: "x" + long}
	failed, err := dial.acknowledges(t.Context(), a.at, "1")
	if err != nil || len(failed) != 1 {
		t.Fatal(failed, err)
	}
	limited("reason of an address", failed[vip], "xä")

	for _, answer := range []error{status.Error(codes.FailedPrecondition, `{"`+long+`":"x"}`),
		status.Error(codes.Internal, long)} {
		a.broken = answer
		if _, err = dial.acknowledges(t.Context(), a.at, "1"); err == nil {
			t.Fatal("an error was not returned")
		}
		limited("error of an agent", err.Error(), "")
	}
}
