// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// While the status of the L2Domain is older than that of the Service, each address is named once.
func TestGatewayThatTheDomainDoesNotNameYet(t *testing.T) {
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile("testdata/endpoints-one-family-from-other.txtar")
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(base, archive)
	if err != nil {
		t.Fatal(err)
	}
	s.question.From = netip.Addr{}
	for range passes {
		s.pass()
	}
	for i := range s.Domains[0].Status.Shards {
		s.Domains[0].Status.Shards[i].Active = ""
	}
	const want = "a gateway answers for 10.50.0.100, fd00:50::100; the status of the L2Domain does not name it yet\n"
	if text := Explain(s.Objects, s.question).Text(Plain, 0); strings.Count(text, want) != 1 {
		t.Errorf("want once %q in\n%s", want, text)
	}
}
