// SPDX-License-Identifier: Apache-2.0

// Package program finds the programs of this module for tests, or builds them.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable names a directory with the programs of `make build`. Tests that run as root then build none, and all tests
// of a level share them: linking a program takes four seconds of CPU time.
const Variable = "SLB_BIN"

const module = "github.com/ovnkube-slb/ovnkube-slb/"

// Path returns the path of a command of this module, such as "test/lab/cmd/lab" or "go-controller/cmd/ovnkube-slb". It
// returns the program in the directory that [Variable] names. If that is not set, it builds the program into dir, for
// which it must be called inside the module.
func Path(ctx context.Context, command, dir string) (string, error) {
	built := os.Getenv(Variable)
	if built != "" {
		dir = built
	}
	path, err := filepath.Abs(filepath.Join(dir, filepath.Base(command)))
	if err != nil || built != "" {
		return path, err
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", path, module+command).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, out)
	}
	return path, nil
}
