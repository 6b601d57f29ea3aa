// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/scrape"
)

// quietPeriod is how long the controller must not have written before it counts as idle.
const quietPeriod = 1500 * time.Millisecond

// latest exceeds the longest delay of any write: the status of pools is written after the changes, when there is time.
const latest = 11 * time.Second

// Controller is the process of the measured program.
type Controller struct {
	*proc.Process
	health, metrics string // addresses of /readyz, and of /metrics and profiles
	scraper         *scrape.Scraper
}

// Start starts the controller with the permissions of its service account. It does not wait until the controller is
// ready.
func (c *Cluster) Start(ctx context.Context) (*Controller, error) {
	return c.start(ctx, "ovnkube-slb", "controller",
		"--cluster-subnets="+c.ClusterSubnets, "--k8s-service-cidrs=10.96.0.0/16", "--nb-address="+c.NB, "--sb-address="+c.SB)
}

// StartNode starts the BGP speaker of a node, in the same way as Start starts the controller.
func (c *Cluster) StartNode(ctx context.Context, node string) (*Controller, error) {
	if _, err := c.Plane.Kubectl(ctx, "apply", "-f", filepath.Join(manifests, "components/bgp/rbac.yaml")); err != nil {
		return nil, err
	}
	return c.start(ctx, "ovnkube-slb-node", "node", "--node-name="+node, "--enable-bgp", "--enable-l2-guard=false")
}

// StartAgent starts the agent that programs the zone of a node with interconnect, in the same way as Start starts the
// controller. nb and sb are the databases of the zone.
func (c *Cluster) StartAgent(ctx context.Context, node, nb, sb string) (*Controller, error) {
	rights := filepath.Join(manifests, "components/interconnect/rbac.yaml")
	if _, err := c.Plane.Kubectl(ctx, "apply", "-f", rights); err != nil {
		return nil, err
	}
	return c.start(ctx, "ovnkube-slb-node", "node", "--node-name="+node, "--enable-l2-guard=false", "--enable-l2",
		"--nb-address="+nb, "--sb-address="+sb, "--cluster-subnets="+c.ClusterSubnets)
}

func (c *Cluster) start(ctx context.Context, account, command string, flags ...string) (*Controller, error) {
	kubeconfig, err := c.Plane.ServiceAccountKubeconfig("ovn-kubernetes", account)
	if err != nil {
		return nil, err
	}
	health, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	metrics, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	if c.scraper == nil {
		if c.scraper, err = scrape.New(ctx, c.Plane); err != nil {
			return nil, err
		}
	}
	c.starts++
	args := append([]string{c.Program, command, "--k8s-kubeconfig=" + kubeconfig,
		"--healthz-bind-address=" + health, "--metrics-bind-address=" + metrics, "--metrics-enable-pprof"}, flags...)
	p, err := proc.Start(ctx, proc.Spec{Name: fmt.Sprintf("%s-%d", command, c.starts), Dir: c.Dir, Args: args})
	if err != nil {
		return nil, err
	}
	return &Controller{p, health, metrics, c.scraper}, nil
}

// ready returns nil once the controller reports that it is ready.
func (c *Controller) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("not ready: %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// Writes returns the number of status writes of all kinds since the start, whatever their result.
func (c *Controller) Writes(ctx context.Context) (int, error) {
	return c.Sum(ctx, "ovnkube_slb_status_writes_total")
}

// Sum returns the sum of a metric over all its labels.
func (c *Controller) Sum(ctx context.Context, metric string) (int, error) {
	text, err := c.scraper.Get(ctx, c.metrics, "/metrics")
	total := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, metric+"{") {
			n, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
			if err != nil {
				return 0, fmt.Errorf("metric %q: %w", line, err)
			}
			total += n
		}
	}
	return total, err
}

// Rest waits until the controller is ready and has written nothing for the time quiet.
func (c *Controller) Rest(ctx context.Context) error { return c.rest(ctx, quietPeriod) }

// Settle is like Rest, but waits for the time latest, after which no write is pending.
func (c *Controller) Settle(ctx context.Context) error { return c.rest(ctx, latest) }

func (c *Controller) rest(ctx context.Context, quiet time.Duration) error {
	tick := time.NewTicker(quiet / 10)
	defer tick.Stop()
	last, since := -1, time.Now()
	for {
		err := c.ready(ctx)
		n := -1
		if err == nil {
			n, err = c.Writes(ctx)
		}
		if n != last || err != nil {
			last, since = n, time.Now()
		} else if time.Since(since) > quiet {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the controller to come to rest after %d writes (log %s): %w", last, c.Log(),
				errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// Usage returns the CPU time in seconds and the resident memory in MB (proc_pid_stat(5), proc_pid_statm(5)).
func (c *Controller) Usage() (cpu, rss float64, err error) {
	used, err := c.CPU()
	if err != nil {
		return 0, 0, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.Pid))
	if err != nil {
		return 0, 0, err
	}
	var pages, resident float64
	if _, err := fmt.Sscan(string(text), &pages, &resident); err != nil {
		return 0, 0, fmt.Errorf("/proc/%d/statm: %w", c.Pid, err)
	}
	return used.Seconds(), resident * float64(os.Getpagesize()) / 1e6, nil
}

// Profile stores the response of the controller for a path below /debug/pprof/ in a file. It retries until the
// controller responds.
func (c *Controller) Profile(ctx context.Context, path, file string) error {
	tick := time.NewTicker(quietPeriod / 30)
	defer tick.Stop()
	for {
		data, err := c.scraper.Get(ctx, c.metrics, "/debug/pprof/"+path)
		if err == nil {
			return os.WriteFile(file, []byte(data), 0o644)
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// Peak returns the peak resident memory of the controller in MB (proc_pid_status(5)).
func (c *Controller) Peak() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseFloat(kilobytes, 64)
	return n * 1024 / 1e6, err
}
