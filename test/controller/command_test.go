// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/scrape"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

// command is a running ovnkube-slb.
type command struct {
	*exec.Cmd
	health  string // address of /readyz
	metrics string // address of /metrics
	scraper *scrape.Scraper
	ended   chan struct{} // closed after the process has ended
	result  error         // of Wait; set before ended is closed
	log     bytes.Buffer  // its output; complete after ended is closed
}

const (
	// tail is the number of log lines of a command that a failed test prints.
	tail = 40
	// renewDeadline is the product's default, as is the lease duration: a leader survives an API server that gets no CPU
	// time for seconds. Only the retry period is shorter, for tests that wait for the next leader.
	renewDeadline = 10 * time.Second
	// probeTimeout is how long a request for the health waits: like a kubelet's probe, not indefinitely. A process whose
	// log is stuck may not answer.
	probeTimeout = 15 * time.Second
)

// build returns the path of the controller.
func (c *cluster) build(t *testing.T) string {
	t.Helper()
	return built(t, "go-controller/cmd/ovnkube-slb", c.plane.Dir())
}

// built returns the path of a program of this module.
func built(t *testing.T, command, dir string) string {
	t.Helper()
	path, err := program.Path(t.Context(), command, dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs a controller that takes part in the election. args come last and override the defaults.
func (c *cluster) command(t *testing.T, binary, name string, o *ovn, args ...string) *command {
	t.Helper()
	return c.commandInto(t, nil, binary, name, o, args...)
}

// commandInto is like command, but writes the log to a file. If to is nil, the log stays in memory.
func (c *cluster) commandInto(t *testing.T, to *os.File, binary, name string, o *ovn, args ...string) *command {
	t.Helper()
	kubeconfig, err := c.plane.ServiceAccountKubeconfig("ovn-kubernetes", "ovnkube-slb")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ovn_k8s.conf")
	conf := fmt.Sprintf("[default]\nmtu=1400\ncluster-subnets=10.244.0.0/16/24\n"+
		"[kubernetes]\nkubeconfig=%s\nservice-cidrs=10.96.0.0/16\n"+
		"[serviceloadbalancers]\nenabled=true\nleader-elect=true\n", kubeconfig)
	for section, db := range map[string]string{"ovnnorth": "nb", "ovnsouth": "sb"} {
		e := o.endpoint(db)
		conf += fmt.Sprintf("[%s]\naddress=%s\nclient-privkey=%s\nclient-cert=%s\nclient-cacert=%s\n", section, e.Address,
			e.PrivateKey, e.Certificate, e.CACert)
	}
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return c.runInto(t, to, binary, name, append([]string{"controller", "--config-file=" + file,
		"--leader-elect-identity=" + name, "--leader-elect-lease-duration=15s",
		"--leader-elect-renew-deadline=" + renewDeadline.String(), "--leader-elect-retry-period=200ms"},
		args...)...)
}

// run runs ovnkube-slb with its own health and metrics addresses until the end of the test. The first element of args
// is the subcommand. Of repeated flags, the last one takes effect.
func (c *cluster) run(t *testing.T, binary, name string, args ...string) *command {
	t.Helper()
	return c.runInto(t, nil, binary, name, args...)
}

// runInto is like run, but writes the log to a file. If to is nil, the log stays in memory.
func (c *cluster) runInto(t *testing.T, to *os.File, binary, name string, args ...string) *command {
	t.Helper()
	health, metrics := freeAddress(t), freeAddress(t)
	args = slices.Concat(args[:1], []string{"--healthz-bind-address=" + health, "--metrics-bind-address=" + metrics},
		args[1:])
	cmd := &command{Cmd: exec.Command(binary, args...), health: health, metrics: metrics, scraper: c.scraper,
		ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &cmd.log, &cmd.log
	if to != nil {
		cmd.Stderr = to
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		cmd.result = cmd.Wait()
		close(cmd.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-cmd.ended
		if t.Failed() {
			lines := strings.Split(cmd.log.String(), "\n")
			t.Logf("the last output of %s:\n%s", name, strings.Join(lines[max(0, len(lines)-tail):], "\n"))
		}
	})
	return cmd
}

// end waits until the command has ended, and returns its result.
func (c *command) end(t *testing.T) error {
	t.Helper()
	await.Receive(t, "the command ends", c.ended)
	return c.result
}

func (c *command) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns an address that no other process of the machine takes, until it is used.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// get returns the response of the command for a path, or the empty string on failure.
func (c *command) get(path string) string {
	if path != "/readyz" && path != "/healthz" {
		body, err := c.scraper.Get(context.Background(), c.metrics, path)
		if err != nil {
			return ""
		}
		return body
	}
	client := http.Client{Timeout: probeTimeout}
	response, err := client.Get("http://" + c.health + path)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// scraped returns the metrics of the command once it responds and they contain a family.
func (c *command) scraped(t *testing.T, family string) string {
	t.Helper()
	body := ""
	eventually(t, "metrics with "+family, func() bool {
		body = c.get("/metrics")
		return strings.Contains(body, "# TYPE "+family+" ")
	})
	return body
}

func (c *cluster) leader(t *testing.T) string {
	t.Helper()
	lease, err := c.client.CoordinationV1().Leases("ovn-kubernetes").Get(t.Context(), "ovnkube-slb", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// commandsTakeTurns runs two commands with the configuration file of OVN-Kubernetes. One leads. The other takes over
// when the first is killed, and releases the lease on SIGTERM.
func commandsTakeTurns(t *testing.T, c *cluster) {
	binary, o := c.build(t), databases(t)
	c.apply(t, baseObjects)
	first := c.command(t, binary, "first", o)
	eventually(t, "the first leads and is ready", func() bool {
		return c.leader(t) == "first" && strings.Contains(first.get("/metrics"), "ovnkube_slb_pass_duration_seconds_count")
	})
	eventually(t, "ready", func() bool { return first.get("/readyz") != "" })
	second := c.command(t, binary, "second", o)
	c.service(t, "web")
	had := c.addresses(t, "web")

	first.signal(t, syscall.SIGKILL)
	eventually(t, "the second leads", func() bool { return c.leader(t) == "second" })
	c.service(t, "late")
	if now := c.addresses(t, "late"); now[0] == had[0] {
		t.Errorf("late has %v, which is web's", now)
	}
	// An amendment assigns the address. The next pass counts it.
	eventually(t, "the metrics count two Services", func() bool {
		return strings.Contains(second.get("/metrics"), `ovnkube_slb_services{allocated="True",reason="Allocated"} 2`)
	})
	second.signal(t, syscall.SIGTERM)
	if err := second.end(t); err != nil {
		t.Errorf("after the stop request: %v", err)
	}
	if got := c.leader(t); got != "" {
		t.Errorf("the lease is still %s's", got)
	}
}
