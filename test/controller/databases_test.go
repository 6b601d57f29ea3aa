// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

func TestMain(m *testing.M) { os.Exit(ovnprefix.Main(m)) }

// ovn is a pair of databases for one test, with ovn-northd between them.
type ovn struct {
	dir       string
	endpoints map[string]slb.Endpoint // by name, "nb" or "sb"
}

func (o *ovn) endpoint(name string) slb.Endpoint { return o.endpoints[name] }

// newOVN returns an ovn without databases. Processes started in its directory end with the test.
func newOVN(t *testing.T) *ovn {
	t.Helper()
	o := &ovn{dir: t.TempDir(), endpoints: map[string]slb.Endpoint{}}
	t.Cleanup(func() {
		if err := proc.KillRecorded(o.dir); err != nil {
			t.Error(err)
		}
	})
	return o
}

func databases(t *testing.T) *ovn {
	t.Helper()
	o := newOVN(t)
	for _, name := range []string{"nb", "sb"} {
		o.endpoints[name] = slb.Endpoint{Address: "unix:" + filepath.Join(o.dir, name+".sock")}
		o.serve(t, name)
	}
	o.furnish(t)
	return o
}

// furnish starts ovn-northd and writes the rows that exist before the controller starts.
func (o *ovn) furnish(t *testing.T) {
	t.Helper()
	// ovn-nbctl 25.09 aborts if ovn-northd inserts the global row at the same time.
	o.nbctl(t, "init")
	o.sbctl(t, "init")
	start(t, proc.Spec{Name: "northd", Dir: o.dir, Args: append([]string{
		"ovn-northd", "--ovnnb-db=" + o.endpoint("nb").Address, "--ovnsb-db=" + o.endpoint("sb").Address,
		"--unixctl=" + filepath.Join(o.dir, "northd.ctl"), "-vsyslog:off",
	}, keys(o.endpoint("nb"))...)})
	// The join network of OVN-Kubernetes.
	o.nbctl(t, "lr-add", "ovn_cluster_router", "--", "ls-add", "join",
		"--", "lrp-add", "ovn_cluster_router", "rtoj-ovn_cluster_router", "0a:58:64:40:00:01", "100.64.0.1/16", "fd98::1/64",
		"--", "lsp-add", "join", "jtor-ovn_cluster_router", "--", "lsp-set-type", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-addresses", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-options", "jtor-ovn_cluster_router", "router-port=rtoj-ovn_cluster_router")
	for i := 1; i <= 3; i++ {
		// The rows of a node: the port of its gateway router on the join switch, and the cluster router port to its
		// pods.
		gateway, pods := fmt.Sprintf("GR_n%d", i), fmt.Sprintf("rtos-n%d", i)
		o.nbctl(t, "lr-add", gateway,
			"--", "lrp-add", gateway, "rtoj-"+gateway, fmt.Sprintf("0a:58:64:40:00:%02x", i+1),
			fmt.Sprintf("100.64.0.%d/16", i+1), fmt.Sprintf("fd98::%d/64", i+1),
			"--", "lrp-add", "ovn_cluster_router", pods, fmt.Sprintf("0a:58:0a:f4:%02x:01", i), fmt.Sprintf("10.244.%d.1/24", i),
			fmt.Sprintf("fd00:10:244:%d::1/64", i))
		name := fmt.Sprintf("chassis-%d", i)
		o.sbctl(t, "chassis-add", name, "geneve", fmt.Sprintf("192.0.2.%d", i), "--",
			"set", "Chassis", name, `other_config:ovn-bridge-mappings="physnet:br-physnet,other:br-other"`)
	}
	o.nbctl(t, "--wait=sb", "sync") // ovn-northd sets the ports up
}

// serve creates the database if it does not exist, and serves it.
func (o *ovn) serve(t *testing.T, name string) {
	t.Helper()
	file, socket := filepath.Join(o.dir, name+".db"), filepath.Join(o.dir, name+".sock")
	if _, err := os.Stat(file); os.IsNotExist(err) {
		run(t, "ovsdb-tool", "create", file, ovnprefix.Schema("ovn/ovn-"+name+".ovsschema"))
	}
	start(t, proc.Spec{Name: name, Dir: o.dir,
		Args: []string{"ovsdb-server", file, "--remote=punix:" + socket, "--unixctl=" + socket + ".ctl", "-vsyslog:off"},
		Ready: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	})
}

// timeout returns the option by which OVN's programs wait as long as the tests do.
func timeout() string { return fmt.Sprintf("--timeout=%.0f", await.Limit.Seconds()) }

// keys returns the ssl options of OVN's programs.
func keys(e slb.Endpoint) []string {
	if e.PrivateKey == "" {
		return nil
	}
	return []string{"--private-key=" + e.PrivateKey, "--certificate=" + e.Certificate, "--ca-cert=" + e.CACert}
}

func (o *ovn) nbctl(t *testing.T, args ...string) string {
	t.Helper()
	return o.ctl(t, "nb", args...)
}

func (o *ovn) sbctl(t *testing.T, args ...string) string {
	t.Helper()
	return o.ctl(t, "sb", args...)
}

func (o *ovn) ctl(t *testing.T, name string, args ...string) string {
	t.Helper()
	e := o.endpoint(name)
	args = slices.Concat([]string{"--db=" + e.Address, timeout()}, keys(e), args)
	var out, warnings strings.Builder // On a busy machine, OVN's tools write warnings.
	var err error
	eventually(t, "a server takes ovn-"+name+"ctl", func() bool {
		out.Reset()
		warnings.Reset()
		cmd := exec.CommandContext(t.Context(), "ovn-"+name+"ctl", args...)
		cmd.Stdout, cmd.Stderr = &out, &warnings
		err = cmd.Run()
		return err == nil || !strings.Contains(warnings.String(), "database connection failed")
	})
	if err != nil {
		t.Fatalf("ovn-%sctl %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), warnings.String())
	}
	return strings.TrimSpace(out.String())
}

// transactions returns the number of transactions ever written to the northbound database: the records of its file.
func (o *ovn) transactions(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(o.dir, "nb.db"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\nOVSDB JSON "))
}

// gatewayPorts returns the names of the chassisredirect ports of our routers.
func (o *ovn) gatewayPorts(t *testing.T) []string {
	t.Helper()
	return strings.Fields(o.sbctl(t, "--bare", "--columns=logical_port", "find", "Port_Binding", "type=chassisredirect"))
}

// claim acts as the ovn-controller of a chassis: it claims all our gateway ports.
func (o *ovn) claim(t *testing.T, chassis string) {
	t.Helper()
	eventually(t, "northd has made gateway ports", func() bool { return len(o.gatewayPorts(t)) > 0 })
	o.nbctl(t, "--wait=sb", "sync") // and now all that there are rows for
	var commands []string
	for _, port := range o.gatewayPorts(t) {
		commands = append(commands, "--", "--if-exists", "lsp-unbind", port, "--", "lsp-bind", port, chassis)
	}
	o.sbctl(t, commands...)
}

// loadBalancers returns the names of the load balancers of Services that serve anything.
func (o *ovn) loadBalancers(t *testing.T) []string {
	t.Helper()
	return strings.Fields(o.nbctl(t, "--bare", "--columns=name", "find", "Load_Balancer",
		`external_ids:"k8s.ovn.org/owner-type"=Service`, "vips!={}"))
}

// backends returns the final destinations of packets to a VIP.
func (o *ovn) backends(t *testing.T, vip string) []string {
	t.Helper()
	return o.allBackends(t)[vip]
}

// allBackends returns the backends of all VIPs. A shard sends packets to aliases, which the load balancers of the nodes
// translate.
func (o *ovn) allBackends(t *testing.T) map[string][]string {
	t.Helper()
	to := map[string]string{}
	for pair := range strings.FieldsSeq(o.nbctl(t, "--bare", "--columns=vips", "list", "Load_Balancer")) {
		from, targets, _ := strings.Cut(pair, "=")
		to[from] = targets
	}
	found := map[string][]string{}
	for vip, targets := range to {
		for target := range strings.SplitSeq(targets, ",") {
			if pod, err := netip.ParseAddrPort(to[target]); err == nil {
				found[vip] = append(found[vip], pod.Addr().String()+" "+strconv.Itoa(int(pod.Port())))
			}
		}
	}
	return found
}

// dump returns the northbound database without its global row, which northd writes as well.
func (o *ovn) dump(t *testing.T) string {
	t.Helper()
	e := o.endpoint("nb")
	tables := strings.Split(run(t, "ovsdb-client", slices.Concat([]string{timeout(), "-vconsole:off", "dump"},
		keys(e), []string{e.Address, "OVN_Northbound"})...), "\n\n")
	return strings.Join(slices.DeleteFunc(tables, func(table string) bool {
		return strings.HasPrefix(table, "NB_Global table")
	}), "\n\n")
}

// kill kills the server of a database with SIGKILL. serve starts it again.
func kill(t *testing.T, o *ovn, name string) {
	t.Helper()
	p, err := proc.Find(o.dir, name)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, spec proc.Spec) {
	t.Helper()
	if _, err := proc.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
