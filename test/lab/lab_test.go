// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

// command is the lab's command, built once for all tests.
var command string

func TestMain(m *testing.M) { os.Exit(contract.Main(m, func() int { return withCommand(m) })) }

func withCommand(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lab-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if command, err = program.Path(context.Background(), labProgram, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// labName returns a lab name that no concurrent test run uses.
func labName(test string) string {
	return test + strconv.FormatInt(int64(os.Getpid()), 36)
}

// upLab builds a lab for a test and checks after the test that nothing is left.
func upLab(t *testing.T, c Config) *Lab {
	t.Helper()
	contract.Test(t)
	if err := Preflight(); err != nil {
		t.Skip(err)
	}
	c.Progress, c.Binary = t.Output(), command
	links := rootLinks(t)
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		requireGone(t, l, links)
	})
	return l
}

// requireGone fails the test if anything of a lab is left.
func requireGone(t *testing.T, l *Lab, linksBefore []string) {
	t.Helper()
	if names, err := l.Namespaces(); err != nil || len(names) > 0 {
		t.Errorf("namespaces left: %v, %v", names, err)
	}
	if pids, err := Strays(l.Name, l.Dir); err != nil || len(pids) > 0 {
		t.Errorf("processes left: %v, %v", pids, err)
	}
	if _, err := os.Stat(l.Dir); !os.IsNotExist(err) {
		t.Errorf("directory %s left: %v", l.Dir, err)
	}
	if diff := cmp.Diff(linksBefore, rootLinks(t)); diff != "" {
		t.Errorf("links of the machine's own namespace differ (-before +after):\n%s", diff)
	}
}

func rootLinks(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// startPods plugs one pod per node with a responder for the ports, without the API server.
func startPods(t *testing.T, l *Lab, ports ...uint16) map[string][]netip.Addr {
	t.Helper()
	plug, err := l.NewPlug(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ","), "[]")
	addrs := map[string][]netip.Addr{}
	for _, n := range l.Nodes {
		pod := kubelet.Pod{Namespace: "t", Name: "web-" + n.Name, UID: types.UID("uid-" + n.Name), Node: n.Name}
		at, err := plug.Plug(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		addrs[n.Name] = at.IPs
		ready := l.path(pod.Name + ".ready")
		if _, err := proc.Start(t.Context(), proc.Spec{
			Name: pod.Name, Dir: l.Dir, Netns: at.Netns, Args: l.self("responder", "-name", pod.Name, "-tcp", list, "-udp", list,
				"-ready-file", ready),
			Ready: func(context.Context) error { _, err := os.Stat(ready); return err },
		}); err != nil {
			t.Fatal(err)
		}
	}
	return addrs
}

// ping retries until there is a reply. The first packet over a new tunnel is lost.
func ping(t *testing.T, l *Lab, from string, to netip.Addr) {
	t.Helper()
	await.NoError(t, fmt.Sprintf("%s is reached from %s", to, from), func(ctx context.Context) error {
		_, err := l.Exec(ctx, from, "ping", "-c1", "-W1", to.String())
		return err
	})
}

func TestPodsReachEachOtherAndOutside(t *testing.T) {
	for _, mode := range []string{Central, Interconnect} {
		t.Run(mode, func(t *testing.T) { testPodsReachEachOtherAndOutside(t, mode) })
	}
}

func testPodsReachEachOtherAndOutside(t *testing.T, mode string) {
	l := upLab(t, Config{Name: labName("pods"), NoKube: true, Network: Network{Mode: mode}})
	addrs := startPods(t, l, 8080)
	for _, from := range l.Nodes {
		for _, to := range l.Nodes {
			for _, addr := range addrs[to.Name] {
				ping(t, l, PodNetns("t", "web-"+from.Name), addr)
			}
		}
		for _, addr := range slices.Concat(l.ClientAddresses(), DMZAddresses(), TaggedAddresses(), RemoteAddresses()) {
			ping(t, l, PodNetns("t", "web-"+from.Name), addr)
		}
		for _, addr := range addrsOf(from.mp0()) {
			ping(t, l, PodNetns("t", "web-"+from.Name), addr)
		}
	}
}

// On br-ex, the host of a node has the MAC address of its gateway router. Packets from the host must not divert traffic
// of the router.
func TestGatewayRouterAnswersAnyHostTraffic(t *testing.T) {
	l := upLab(t, Config{Name: labName("host"), NoKube: true, Nodes: 1})
	n := l.Nodes[0]
	if err := ip.Batch(t.Context(), l.Netns(n.Name), "addr add 192.0.2.1/24 dev br-ex"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Exec(t.Context(), n.Name, "ping", "-c1", "-W1", "192.0.2.2"); err == nil {
		t.Fatal("an unused address has an answer")
	}
	ports, err := run(t.Context(), "ovs-appctl", "-t", l.path(n.Name, "vswitchd.ctl"), "fdb/show", "br-ex")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`LOCAL +\d+ +` + n.MAC).MatchString(ports) {
		t.Errorf("what is for the gateway router goes to the host:\n%s", ports)
	}
}

func TestRepeatedPlugIsIdempotent(t *testing.T) {
	l := upLab(t, Config{Name: labName("plug"), NoKube: true, Nodes: 1})
	pods := []kubelet.Pod{
		{Namespace: "a", Name: "one", UID: "1", Node: "n1"}, {Namespace: "a", Name: "two", UID: "2", Node: "n1"},
	}
	var first []kubelet.Attachment
	for run := range 2 { // The second run is a restarted agent.
		plug, err := l.NewPlug(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, pod := range pods {
			at, err := plug.Plug(t.Context(), pod)
			if err != nil {
				t.Fatal(err)
			}
			if run == 0 {
				first = append(first, at)
			} else if diff := cmp.Diff(first[i], at, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("plugged again (-first +second):\n%s", diff)
			}
		}
	}
	if first[0].IPs[0] == first[1].IPs[0] {
		t.Errorf("both pods have %s", first[0].IPs[0])
	}
	plug, err := l.NewPlug(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := plug.Unplug(t.Context(), pods[0]); err != nil {
			t.Fatal(err)
		}
	}
	at, err := plug.Plug(t.Context(), kubelet.Pod{Namespace: "a", Name: "three", UID: "3", Node: "n1"})
	if err != nil || at.IPs[0] != first[0].IPs[0] {
		t.Errorf("address of the pod that went: got %v, %v, want %v given again", at.IPs, err, first[0].IPs)
	}
	out, err := l.vsctl(t.Context(), l.Nodes[0], "list-ports", "br-int")
	if err != nil || strings.Contains(out, podLink(pods[0])) {
		t.Errorf("ports of br-int: %q, %v: want none of the pod that went", out, err)
	}
}

// The kernel may remove a namespace long after its name is gone. Here it is delayed by an open file.
func TestRecreatedPodHasItsOwnLink(t *testing.T) {
	l := upLab(t, Config{Name: labName("again"), NoKube: true, Nodes: 1})
	plug, err := l.NewPlug(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pod := kubelet.Pod{Namespace: "a", Name: "one", UID: "1", Node: "n1"}
	link := func() (link net.Interface) {
		if err := inNetns(l.Netns("n1"), func() error {
			found, err := net.InterfaceByName(podLink(pod))
			if err == nil {
				link = *found
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return link
	}
	at, err := plug.Plug(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	first := link()
	held, err := os.Open(filepath.Join(netnsDir, at.Netns))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := plug.Unplug(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.UID = "2"
	if _, err := plug.Plug(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if second := link(); second.Index == first.Index {
		t.Errorf("the second pod has link %d of the first", first.Index)
	}
}

func TestTwoLabsSideBySide(t *testing.T) {
	for _, name := range []string{"sidea", "sideb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := upLab(t, Config{Name: labName(name), NoKube: true, Nodes: 2})
			addrs := startPods(t, l, 8080)
			ping(t, l, PodNetns("t", "web-n1"), addrs["n2"][0])
			ping(t, l, PodNetns("t", "web-n2"), addrs["n1"][1])
		})
	}
}

func TestUpOfExistingLabReportsNextStep(t *testing.T) {
	l := upLab(t, Config{Name: labName("twice"), NoKube: true, Nodes: 1})
	_, err := Up(t.Context(), Config{Name: l.Name, NoKube: true})
	if err == nil || !strings.Contains(err.Error(), "lab --name "+l.Name+" down") {
		t.Errorf("second Up: %v: want advice", err)
	}
	if _, err := l.NB(t.Context(), "show"); err != nil {
		t.Errorf("the lab does not live any more: %v", err)
	}
}

// The error of Up must include the output of a program that fails during startup because the program has no terminal.
func TestUpCommandReportsFailure(t *testing.T) {
	contract.Test(t)
	if err := Preflight(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"bin/ovsdb-tool": "#!/bin/sh\necho no such luck >&2\nexit 3\n",
		"bin/ovn-nbctl":  "", "sbin/ovsdb-server": "", "share/ovn/ovn-nb.ovsschema": "",
		"share/openvswitch/vswitch.ovsschema": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), command, "--name", labName("mute"), "up", "--nodes", "1", "--no-kube")
	cmd.Env = append(os.Environ(), ovnprefix.Variable+"="+dir)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no such luck") {
		t.Errorf("%v, with output:\n%s", err, out)
	}
}

func TestConfigNamesFieldAndValue(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Name: "Has-Upper"}, `"Has-Upper"`},
		{Config{Name: "waytoolongname"}, `"waytoolongname"`},
		{Config{Name: "slb-2"}, `"slb-2"`},
		{Config{Nodes: 101}, "nodes 101"},
		{Config{Nodes: -1}, "nodes -1"},
	} {
		if err := c.config.withDefaults().validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v: want it to name %s", c.config, err, c.want)
		}
	}
}

func TestSnapshotExcludesOwnRowsAndOVNState(t *testing.T) {
	l := upLab(t, Config{Name: labName("snap"), NoKube: true, Nodes: 1})
	const controller = "someone"
	snapshot := func() string {
		t.Helper()
		s, err := l.SnapshotNB(t.Context(), func(_ string, row Row) bool { return !row.OwnedBy(controller) })
		if err != nil {
			t.Fatal(err)
		}
		return s.String()
	}
	before := snapshot()
	for _, want := range []string{"Load_Balancer\n", "ACL\n", `"rtos-n1"`,
		`"default-network-controller:Cluster:clusterPortGroup"`} {
		if !strings.Contains(before, want) {
			t.Errorf("snapshot lacks %s:\n%s", want, before)
		}
	}
	if _, err := l.NB(t.Context(), "--wait=hv", "create", "Logical_Switch", "name=ours",
		"external_ids:k8s.ovn.org/owner-controller="+controller); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, snapshot()); diff != "" {
		t.Errorf("a row of %s and a sync changed the snapshot (-before +after):\n%s", controller, diff)
	}
	if _, err := l.NB(t.Context(), "set", "Logical_Router", clusterRouter, "options:x=y"); err != nil {
		t.Fatal(err)
	}
	if before == snapshot() {
		t.Errorf("a changed option of %s is not in the snapshot", clusterRouter)
	}
}
