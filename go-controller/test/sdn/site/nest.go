// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/responder"
)

// Environment variables. inside marks the process in the site's namespace and contains the directory of its files.
// role makes the process a part of the site.
const (
	inside = "SLB_TEST_SDN_DIR"
	role   = "SLB_TEST_SDN_ROLE"
)

// IsPart reports whether this process is a part of a site, which Nest runs.
func IsPart() bool { return os.Getenv(role) != "" }

// Nest runs work in a namespace of its own and returns its exit status. It executes this program again and removes
// what that leaves behind. It must be called first in main.
func Nest(work func(dir string) int) int {
	switch os.Getenv(role) {
	case "":
	case "responder":
		return played(responder.Main(context.Background(), os.Args[1:]))
	case "probe":
		return played(playProbe(os.Args[1:]))
	case "watch":
		return played(playWatch(os.Args[1], os.Args[2:]))
	}
	return proc.Nest(inside, work)
}

func played(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err) //nolint:errcheck // the error cannot be reported elsewhere
		return 1
	}
	return 0
}

// sayAnswered signals on standard output that each target has answered once.
func sayAnswered() {
	fmt.Fprintln(os.Stdout, probe.AnsweredLine) //nolint:errcheck // a reader who is gone needs no answer
}

// playProbe sends requests until standard input ends, and prints the results.
func playProbe(texts []string) error {
	var specs []probe.Spec
	for _, text := range texts {
		spec, err := probe.ParseSpec(text)
		if err != nil {
			return err
		}
		specs = append(specs, spec)
	}
	results, err := probe.Run(untilEnd(os.Stdin), specs, probe.Options{Answered: sayAnswered})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// untilEnd returns a context that ends when r does.
func untilEnd(r io.Reader) context.Context {
	ctx, end := context.WithCancel(context.Background())
	go func() {
		defer end()
		_, _ = io.Copy(io.Discard, r) // regardless of errors
	}()
	return ctx
}

func playWatch(device string, texts []string) error {
	var addrs []netip.Addr
	for _, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		addrs = append(addrs, a)
	}
	seen, err := watch(untilEnd(os.Stdin), device, addrs, sayAnswered)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}
