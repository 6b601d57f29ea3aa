// SPDX-License-Identifier: Apache-2.0

// Command kubectl-slb is a kubectl plugin that shows why an address of a Service is not reachable, and operates the
// service load balancers of OVN-Kubernetes. It uses the Kubernetes API only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

// version is set by the linker.
var version = "dev"

// Exit codes.
const (
	exitOK = 0
	// exitError means that the command failed, so that its question has no answer.
	exitError = 1
	// exitRefused means that the API server would refuse an object of an edit.
	exitRefused = 2
	// exitNotReachable means that a Service is not known to be reachable, or would not be after an edit for all clients.
	exitNotReachable = 3
	// exitProblem means that objects would have problems after an edit that they do not have now.
	exitProblem = 4
)

// errRefused makes the command exit with exitRefused. Its output has said why.
var errRefused = errors.New("an object would be refused")

// errNotReachable makes the command exit with exitNotReachable. Its output has said why.
var errNotReachable = errors.New("not reachable")

// errProblem makes the command exit with exitProblem. Its output has said why.
var errProblem = errors.New("an object would have a problem")

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends a command that only computes.
	app := newApp()
	err := errors.Join(printable.SetLog(os.Stderr, 0), app.RunContext(ctx, arranged(app, os.Args)))
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errRefused):
		return exitRefused
	case errors.Is(err, errNotReachable):
		return exitNotReachable
	case errors.Is(err, errProblem):
		return exitProblem
	}
	fmt.Fprintln(printable.NewWriter(os.Stderr, false), "kubectl slb:", err)
	return exitError
}

func newApp() *cli.App {
	app := &cli.App{
		Name:    "kubectl slb",
		Usage:   "inspect and operate the service load balancers of OVN-Kubernetes",
		Version: version,
		Description: `Needs the Kubernetes API only, with the permissions of its user.

Examples:
  kubectl slb explain web
  kubectl slb status`,
		Commands: []*cli.Command{
			explainCommand(),
			statusCommand(),
			bgpCommand(),
			drainCommand(),
			undrainCommand(),
			moveCommand(),
			planCommand(),
			graphCommand(),
			importCommand(),
			completionCommand(),
			completeCommand(),
		},
		// Objects contain what nodes and tenants write.
		Before: func(c *cli.Context) error {
			c.App.Writer = printable.NewWriter(c.App.Writer, colours(c.App.Writer))
			c.App.ErrWriter = printable.NewWriter(c.App.ErrWriter, false)
			return nil
		},
		HideHelpCommand: true,
		Suggest:         true,
		Action:          helpOrUnknown,
		ExitErrHandler:  func(*cli.Context, error) {}, // run prints the error
	}
	for _, c := range app.Commands {
		c.OnUsageError = usageError
	}
	return app
}

// helpOrUnknown runs if no command is named, or one that does not exist.
func helpOrUnknown(c *cli.Context) error {
	name := c.Args().First()
	if name == "" {
		return cli.ShowAppHelp(c)
	}
	near := slices.DeleteFunc(c.App.VisibleCommands(), func(known *cli.Command) bool {
		return known.Name[0] != name[0] || known.Name == "help"
	})
	suggestion := ""
	if len(near) > 0 {
		suggestion = " " + cli.SuggestCommand(near, name)
	}
	return fmt.Errorf("unknown command %q.%s kubectl slb --help lists the commands", name, suggestion)
}
