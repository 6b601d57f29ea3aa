// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// run executes a command and returns its standard output. An error includes the command and its output.
func run(ctx context.Context, args ...string) (string, error) { return feed(ctx, "", args...) }

// feed is like run, with standard input.
func feed(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", brief(args), err, strings.TrimSpace(diag.String()+out.String()))
	}
	return out.String(), nil
}

// brief shortens a command line for an error message. A batch for ovn-nbctl may have thousands of words.
func brief(args []string) string {
	const most = 300
	line := strings.Join(args, " ")
	if len(line) > most {
		line = line[:most] + "..."
	}
	return line
}

// toolTimeout is a flag of the tools of OVN and Open vSwitch: by default they wait for their database forever.
func toolTimeout() string { return fmt.Sprintf("--timeout=%.0f", poll.Limit.Seconds()) }

// lines splits an output that has one word per line.
func lines(out string) []string { return strings.Fields(out) }
