// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/load"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Load sends as much as is answered from a namespace (package load).
func (l *Lab) Load(ctx context.Context, short string, s load.Spec) (r load.Result, err error) {
	args := []string{"load", "--workers", strconv.Itoa(s.Workers), "--duration", s.Duration.String(), "--count",
		strconv.Itoa(s.Count), string(s.Kind)}
	for _, target := range s.Targets {
		args = append(args, target.String())
	}
	text, err := l.Exec(ctx, short, l.self(args...)...)
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	if err != nil {
		return r, fmt.Errorf("load from %s: %w", short, err)
	}
	return r, nil
}

// Flooded is the result of a flood.
type Flooded struct {
	Sent    int     `json:"sent"`
	Seconds float64 `json:"seconds"`
}

// Flood sends count TCP segments with SYN to a target from the client behind the router, rate per second, each from
// another pair of address and port. It gives the client FloodSources further addresses for that, and drops what is sent
// to these, so that no answer of the client's kernel ends a connection that the flood has opened.
func (l *Lab) Flood(ctx context.Context, target netip.AddrPort, count, rate int) (f Flooded, err error) {
	family := 0
	if target.Addr().Is6() {
		family = 1
	}
	var add, del, sources []string
	for i := range FloodSources {
		source := Beyond().Host(firstFlood + i)[family]
		add = append(add, fmt.Sprintf("addr replace %s dev eth0 nodad", source))
		del = append(del, fmt.Sprintf("addr del %s dev eth0", source))
		sources = append(sources, source.Addr().String())
	}
	drop := fmt.Sprintf("table inet flood {\n\tchain in {\n\t\ttype filter hook prerouting priority raw; policy accept;\n"+
		"\t\t%s daddr { %s } tcp flags & ack == ack drop\n\t}\n}\n", []string{"ip", "ip6"}[family],
		strings.Join(sources, ", "))
	netns := l.Netns(remoteNetns)
	if _, err := feed(ctx, drop, l.inside(remoteNetns, "nft", "-f", "-")...); err != nil {
		return f, fmt.Errorf("flood to %s: %w", target, err)
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		_, undo := l.Exec(ctx, remoteNetns, "nft", "delete", "table", "inet", "flood")
		err = errors.Join(err, undo, ip.Batch(ctx, netns, del...))
	}()
	if err := ip.Batch(ctx, netns, add...); err != nil {
		return f, fmt.Errorf("flood to %s: %w", target, err)
	}
	text, err := l.execForemost(ctx, remoteNetns, l.self(append([]string{"flood", "--count", strconv.Itoa(count),
		"--rate", strconv.Itoa(rate), target.String()}, sources...)...)...)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return f, fmt.Errorf("flood to %s: %w", target, err)
	}
	return f, nil
}

// execForemost is like Exec, for a host whose speed must not depend on what else runs on the machine.
func (l *Lab) execForemost(ctx context.Context, short string, args ...string) ([]byte, error) {
	cmd := l.Command(ctx, short, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	proc.SetNice(cmd.Process.Pid, proc.Foremost)
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", brief(args), err, strings.TrimSpace(diag.String()))
	}
	return out.Bytes(), nil
}

// FloodSources is the number of addresses of a flood.
const FloodSources = 2

// firstFlood is the host number of the first of them, on the segment of the client behind the router.
const firstFlood = 40

// Appctl runs ovs-appctl(8) on the ovs-vswitchd of a node and returns its output.
func (l *Lab) Appctl(ctx context.Context, node string, args ...string) (string, error) {
	return run(ctx, append([]string{"ovs-appctl", toolTimeout(), "-t", l.path(node, "vswitchd.ctl")}, args...)...)
}

// SwitchCPU returns the CPU time that the ovs-vswitchd of a node has used since it started.
func (l *Lab) SwitchCPU(node string) (time.Duration, error) {
	p, err := proc.Find(filepath.Join(l.Dir, node), vswitchdName)
	if err != nil {
		return 0, err
	}
	return p.CPU()
}
