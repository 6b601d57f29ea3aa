// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
)

// On a terminal no line is longer than it is wide, except commands, and all words are there.
func TestTextIsWrapped(t *testing.T) {
	const width = 60
	long := strings.TrimSpace(strings.Repeat("some words ", 30))
	r := &Result{Service: "shop/web", Addresses: []string{"10.0.0.1"}, Reachable: No, Links: []Link{
		{Name: LinkGateway, Object: "n1", State: Broken, Reason: "Faulty", Message: long, Command: "kubectl get " + long},
		{Name: LinkBGP, Object: "tor", State: Warning, Reason: "SessionsDown", Message: long},
	}, Notes: []string{long}}
	r.FirstBroken = &r.Links[0]
	text, whole := r.Text(Plain, width), r.Text(Plain, 0)
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > width && !strings.Contains(line, "kubectl") {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	if strings.Join(strings.Fields(text), " ") != strings.Join(strings.Fields(whole), " ") {
		t.Errorf("the words differ:\n%s\nof\n%s", text, whole)
	}
	if narrow := Wrap(long, 50, 40); strings.Contains(narrow, "\n\n") || len(narrow) < len(long) {
		t.Errorf("an indent beyond the width: %q", narrow)
	}
}

// Links that differ only in the address share a line; the first broken one of them is still named.
func TestLinesOfSeveralAddresses(t *testing.T) {
	r := &Result{Addresses: []string{"10.0.0.1", "10.0.0.11", "fd00::1"}, Links: []Link{
		{Name: LinkDomain, Object: "lan", State: OK, Message: "has the segment of 10.0.0.1"},
		{Name: LinkDomain, Object: "lan", State: OK, Message: "has the segment of 10.0.0.11"},
		{Name: LinkDomain, Object: "lan", State: OK, Message: "has the segment of fd00::1"},
		{Name: LinkGateway, Object: "n1", State: Broken, Reason: "Faulty", Message: "answers not for 10.0.0.1"},
		{Name: LinkGateway, Object: "n2", State: Broken, Reason: "Faulty", Message: "answers not for 10.0.0.11"},
		{Name: LinkBGP, Object: "n1", State: OK, Message: "10.0.0.1: advertised to tor"},
		{Name: LinkBGP, Object: "n1", State: OK, Message: "fd00::1: advertised to tor"},
		{Name: LinkDataplane, Object: "OVN", State: OK, Message: "programmed"},
	}}
	r.FirstBroken = &r.Links[3]
	var got []string
	for _, l := range r.lines() {
		got = append(got, l.Object+" "+l.Message)
		if l.first != (l.Reason != "" && l.Object == "n1") {
			t.Errorf("%s is the first broken link: %t", l.Object, l.first)
		}
	}
	const want = "lan has the segment of 10.0.0.1, 10.0.0.11, fd00::1; n1 answers not for 10.0.0.1; " +
		"n2 answers not for 10.0.0.11; n1 10.0.0.1, fd00::1: advertised to tor; OVN programmed"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("lines\n%s\nwant\n%s", text, want)
	}
}
