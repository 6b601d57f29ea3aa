// SPDX-License-Identifier: Apache-2.0

package frr

import (
	"bytes"
	"cmp"
	"context"
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

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/cache"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Variable is the environment variable that names the directory of FRR, as contrib/frr.sh unpacks it: its lib/frr has
// the daemons, its bin vtysh. If it is empty, routers run the FRR that the system has installed.
const Variable = "LAB_FRR_PREFIX"

// The daemons of a router.
const (
	Zebra = "zebra"
	BGPD  = "bgpd"
	BFDD  = "bfdd"
	// mgmtd has the configuration of interfaces and BFD from FRR 10 on. Earlier versions do without.
	mgmtd = "mgmtd"
)

// Prefix returns the directory of FRR that the environment specifies, or that of the system.
func Prefix() string { return cmp.Or(os.Getenv(Variable), "/usr") }

// Prefixes returns the directories of all FRR on this machine, for tests that must hold with each: only that of the
// environment if it specifies one, otherwise the system's and those that contrib/frr.sh has unpacked into the cache.
func Prefixes() []string {
	all := []string{Prefix()}
	dir, err := cache.Dir()
	if os.Getenv(Variable) != "" || err != nil {
		return all
	}
	unpacked, _ := filepath.Glob(program(filepath.Join(dir, "frr-*"), BGPD)) // The pattern is well-formed.
	for _, path := range unpacked {
		if prefix := strings.TrimSuffix(path, program("", BGPD)); !strings.HasSuffix(prefix, ".new") {
			all = append(all, strings.TrimSuffix(prefix, "/"))
		}
	}
	return all
}

// Programs returns the paths of the programs that a router needs in a directory of FRR.
func Programs(prefix string) []string {
	programs := []string{vtysh(prefix)}
	for _, daemon := range []string{Zebra, BGPD, BFDD} {
		programs = append(programs, program(prefix, daemon))
	}
	return programs
}

func program(prefix, daemon string) string { return filepath.Join(prefix, "lib/frr", daemon) }

func vtysh(prefix string) string { return filepath.Join(prefix, "bin/vtysh") }

// ownScript runs a command to which the directory $1 is the one where FRR has sockets, and the one where it has state.
// No option changes all of them. It changes the mount namespace that ip-netns(8) creates.
const ownScript = `set -e
mkdir -p /run/frr
for shared in /run/frr /var/lib/frr; do
	[ ! -d "$shared" ] || mount --bind "$1" "$shared"
done
shift
exec "$@"`

// Router is an instance of FRR.
type Router struct {
	// Name is FRR's pathspace, which distinguishes instances on a machine.
	Name string
	// Dir is used by the router exclusively. The user frr must be able to access it.
	Dir string
	// Netns is the network namespace in which the router runs, by its name in ip-netns(8).
	Netns string
	// Prefix is the directory of FRR. The default is that of [Prefix].
	Prefix string
}

func (r Router) prefix() string { return cmp.Or(r.Prefix, Prefix()) }

// Start starts the daemons and returns when each of them responds.
func (r Router) Start(ctx context.Context) error {
	if err := r.directory(); err != nil {
		return fmt.Errorf("start router %s: %w", r.Name, err)
	}
	if _, err := os.Stat(program(r.prefix(), mgmtd)); err == nil {
		if err := r.StartDaemon(ctx, mgmtd); err != nil { // The others receive configuration from it.
			return err
		}
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
		"sh", "-c", ownScript, "sh", r.Dir,
		program(r.prefix(), daemon), "-N", r.Name, "-u", "frr", "-g", "frr", "--vty_socket", r.Dir,
		"-A", "127.0.0.1", "-P", "0", "--log", "stdout", "-i", filepath.Join(r.Dir, daemon+".pid"),
	}
	if daemon != mgmtd { // It has no file of its own.
		args = append(args, "-f", r.emptyConfig())
	}
	if daemon == BGPD {
		args = append(args, "-p", "179")
	}
	// A daemon that was killed has left it.
	if err := os.Remove(r.socket(daemon)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("start %s of router %s: %w", daemon, r.Name, err)
	}
	_, err := proc.Start(ctx, proc.Spec{
		Name: daemon, Dir: r.Dir, Netns: r.Netns, Args: args, Nice: proc.Foremost,
		Ready: func(ctx context.Context) error {
			_, err := r.ask(ctx, daemon, "show version")
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

// Vtysh returns a command that runs vtysh on the router's daemons.
func (r Router) Vtysh(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, vtysh(r.prefix()), append([]string{"--vty_socket", r.Dir}, args...)...)
}

func (r Router) vtysh(ctx context.Context, args ...string) ([]byte, error) {
	cmd := r.Vtysh(ctx, args...)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("vtysh: %w: %s", err, strings.TrimSpace(diag.String()+out.String()))
	}
	return out.Bytes(), nil
}

func (r Router) socket(daemon string) string { return filepath.Join(r.Dir, daemon+".vty") }

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
