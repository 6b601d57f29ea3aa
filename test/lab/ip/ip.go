// SPDX-License-Identifier: Apache-2.0

// Package ip configures network namespaces, addresses and links with ip(8).
package ip

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Batch runs lines of ip(8) in one process, in a network namespace or, if netns is empty, in that of the caller. It
// stops at the first line that fails.
func Batch(ctx context.Context, netns string, lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	args := []string{"-batch", "-"}
	if netns != "" {
		args = slices.Concat([]string{"-n", netns}, args)
	}
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s (of the lines:\n\t%s)", strings.Join(args, " "), err, strings.TrimSpace(string(out)),
			strings.Join(lines, "\n\t"))
	}
	return nil
}
