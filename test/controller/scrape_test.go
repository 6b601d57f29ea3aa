// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/scrape"
)

// metricsNeedARight requests the metrics of each process at an address of the machine, with and without permission.
func metricsNeedARight(t *testing.T, c *cluster) {
	c.kubectl(t, "apply", "-f", filepath.Join(manifests, "components/bgp/rbac.yaml"))
	account := func(name string, roles ...string) *scrape.Scraper {
		s, err := scrape.As(t.Context(), c.plane, name, roles...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	anonymous, forged := &scrape.Scraper{}, &scrape.Scraper{Token: c.scraper.Token + "x"}
	stranger, reader := account("stranger"), account("reader", "ovnkube-slb-metrics-reader")
	node, err := c.plane.ServiceAccountKubeconfig("ovn-kubernetes", "ovnkube-slb-node")
	if err != nil {
		t.Fatal(err)
	}
	binary, o := c.build(t), databases(t)
	for name, process := range map[string]struct {
		start func(t *testing.T, flags ...string) *command
		has   string
	}{
		"controller": {func(t *testing.T, flags ...string) *command {
			return c.command(t, binary, "controller", o, flags...)
		},
			"ovnkube_slb_pass_duration_seconds"},
		"guard": {func(t *testing.T, flags ...string) *command {
			return c.run(t, binary, "guard", append([]string{"node", "--k8s-kubeconfig=" + node, "--node-name=n1",
				"--ovs-address=unix:/nowhere", "--ovn-run-dir=/nowhere"}, flags...)...)
		}, "process_start_time_seconds"},
		"bgp": {func(t *testing.T, flags ...string) *command {
			return c.run(t, binary, "bgp", append([]string{"node", "--k8s-kubeconfig=" + node, "--node-name=n1", "--enable-bgp",
				"--enable-l2-guard=false"}, flags...)...)
		}, "process_start_time_seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			port := freePortOfAll(t)
			process.start(t, "--metrics-bind-address=:"+port, "--metrics-enable-pprof")
			address := net.JoinHostPort(machineAddress(t), port)
			eventually(t, "metrics for authorized clients", func() bool {
				body, err := reader.Get(t.Context(), address, "/metrics")
				return err == nil && strings.Contains(body, process.has)
			})
			const metrics, heap, index = "/metrics", "/debug/pprof/heap", "/debug/pprof/"
			for _, test := range []struct {
				who  string
				as   *scrape.Scraper
				path string
				want int
			}{
				{"no token", anonymous, metrics, http.StatusUnauthorized},
				{"no token", anonymous, heap, http.StatusUnauthorized},
				{"no token", anonymous, "/", http.StatusUnauthorized},
				{"a forged token", forged, metrics, http.StatusUnauthorized},
				{"a token without rights", stranger, metrics, http.StatusForbidden},
				{"a token without rights", stranger, heap, http.StatusForbidden},
				{"a reader of metrics", reader, metrics, http.StatusOK},
				{"a reader of metrics", reader, heap, http.StatusForbidden},
				{"a reader of metrics", reader, index, http.StatusForbidden},
				{"a reader of metrics", reader, "/metrics/../debug/pprof/heap", http.StatusForbidden},
				{"a reader of profiles", c.scraper, heap, http.StatusOK},
				{"a reader of profiles", c.scraper, index, http.StatusOK},
			} {
				var code int
				var body string
				var err error
				eventually(t, "the API server reviews the request in time", func() bool {
					code, body, err = test.as.Do(t.Context(), "https://"+address+test.path)
					return err != nil || code != http.StatusServiceUnavailable
				})
				if err != nil || code != test.want {
					t.Errorf("%s gets %d for %s (%v), want %d", test.who, code, test.path, err, test.want)
				}
				if code != http.StatusOK && strings.Contains(body, "process_start_time_seconds") {
					t.Errorf("%s gets metrics with status %d", test.who, code)
				}
			}
			if code, body, err := c.scraper.Do(t.Context(), "http://"+address+metrics); err == nil &&
				(code == http.StatusOK || strings.Contains(body, "process_")) {
				t.Errorf("plain HTTP is answered with %d", code)
			}
		})
	}
}

// freePortOfAll returns a port that is free on all addresses of the machine.
func freePortOfAll(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return port
}

// machineAddress returns an IPv4 address of this machine that other hosts can reach, or the loopback address if there
// is none.
func machineAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr().String()
		}
	}
	return "127.0.0.1"
}
