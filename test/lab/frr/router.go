// SPDX-License-Identifier: Apache-2.0

package frr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Programs is the directory in which Debian's package frr installs the daemons.
const Programs = "/usr/lib/frr"

// The daemons of a router.
const (
	Zebra = "zebra"
	BGPD  = "bgpd"
	BFDD  = "bfdd"
)

// Router is an instance of FRR.
type Router struct {
	// Name is FRR's pathspace, which distinguishes instances on a machine.
	Name string
	// Dir is used by the router exclusively. The user frr must be able to access it.
	Dir string
	// Netns is the network namespace in which the router runs, by its name in ip-netns(8).
	Netns string
}

// Start starts the daemons and returns when each of them responds.
func (r Router) Start(ctx context.Context) error {
	if err := r.directory(); err != nil {
		return fmt.Errorf("start router %s: %w", r.Name, err)
	}
	if err := r.StartDaemon(ctx, Zebra); err != nil { // The others connect to it.
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, daemon := range []string{BGPD, BFDD} {
		g.Go(func() error { return r.StartDaemon(gctx, daemon) })
	}
	return g.Wait()
}

// StartDaemon starts a daemon without configuration. The caller passes its previous configuration to Configure.
func (r Router) StartDaemon(ctx context.Context, daemon string) error {
	args := []string{
		filepath.Join(Programs, daemon), "-N", r.Name, "-u", "frr", "-g", "frr", "-z", filepath.Join(r.Dir, "zserv.api"),
		"--vty_socket", r.Dir, "-A", "127.0.0.1", "-P", "0", "--log", "stdout",
		"-f", r.emptyConfig(), "-i", filepath.Join(r.Dir, daemon+".pid"),
	}
	switch daemon {
	case BGPD:
		args = append(args, "-p", "179")
	case BFDD:
		args = append(args, "--bfdctl", filepath.Join(r.Dir, "bfdd.sock"))
	}
	socket := filepath.Join(r.Dir, daemon+".vty")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) { // Left by a daemon that was killed.
		return fmt.Errorf("start %s of router %s: %w", daemon, r.Name, err)
	}
	_, err := proc.Start(ctx, proc.Spec{
		Name: daemon, Dir: r.Dir, Netns: r.Netns, Args: args, Nice: proc.Foremost,
		Ready: func(ctx context.Context) error {
			if _, err := os.Stat(socket); err != nil {
				return err
			}
			_, err := r.vtysh(ctx, "-d", daemon, "-c", "show version")
			return err
		},
	})
	return err
}

// Kill kills the daemons by SIGKILL, or all if none is named. Daemons that are dead are ignored.
func (r Router) Kill(daemons ...string) error {
	if len(daemons) == 0 {
		return proc.KillRecorded(r.Dir)
	}
	for _, daemon := range daemons {
		p, err := proc.Find(r.Dir, daemon)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			return fmt.Errorf("kill %s of router %s: %w", daemon, r.Name, err)
		}
	}
	return nil
}

// Configure loads lines of configuration, in the syntax of frr.conf, in one operation.
func (r Router) Configure(ctx context.Context, lines ...string) error {
	file, err := os.CreateTemp(r.Dir, "load-*.conf")
	if err != nil {
		return fmt.Errorf("configure router %s: %w", r.Name, err)
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(strings.Join(lines, "\n") + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("configure router %s: %w", r.Name, err)
	}
	if _, err := r.vtysh(ctx, "-f", file.Name()); err != nil {
		return fmt.Errorf("configure router %s: %w", r.Name, err)
	}
	return nil
}

// Show runs a command whose output is JSON ("show bgp summary json") and decodes it.
func (r Router) Show(ctx context.Context, command string, into any) error {
	out, err := r.vtysh(ctx, "-c", command)
	if err != nil {
		return fmt.Errorf("router %s: %s: %w", r.Name, command, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("router %s: %s: %w: %.200s", r.Name, command, err, out)
	}
	return nil
}

func (r Router) vtysh(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "vtysh", append([]string{"--vty_socket", r.Dir}, args...)...)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("vtysh: %w: %s", err, strings.TrimSpace(diag.String()+out.String()))
	}
	return out.Bytes(), nil
}

func (r Router) emptyConfig() string { return filepath.Join(r.Dir, "frr.conf") }

// directory creates a directory owned by the user frr because FRR refuses to run as root.
func (r Router) directory() error {
	frr, err := user.Lookup("frr")
	if err != nil {
		return fmt.Errorf("user of package frr: %w", err)
	}
	uid, _ := strconv.Atoi(frr.Uid) // On Linux both IDs are numeric.
	gid, _ := strconv.Atoi(frr.Gid)
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(r.emptyConfig(), []byte("hostname router\n"), 0o640); err != nil {
		return err
	}
	for _, path := range []string{r.Dir, r.emptyConfig()} {
		if err := os.Chown(path, uid, gid); err != nil {
			return err
		}
	}
	return nil
}
