// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

const southboundSchema = "ovn/ovn-sb.ovsschema"

// translate runs a real ovn-northd between two databases and returns the path of its log.
func translate(t *testing.T, nb, sb *server) string {
	t.Helper()
	log, _ := startNorthd(t, nb, sb)
	return log
}

// startNorthd is translate, and returns the process, too.
func startNorthd(t *testing.T, nb, sb *server) (log string, process *os.Process) {
	t.Helper()
	dir := filepath.Dir(nb.socket)
	log = filepath.Join(dir, "northd.log")
	northd := exec.Command("ovn-northd", "--ovnnb-db=unix:"+nb.socket, "--ovnsb-db=unix:"+sb.socket,
		"--log-file="+log, "--unixctl="+filepath.Join(dir, "northd.ctl"), "-vconsole:off")
	northd.Env = append(os.Environ(), "OVN_RUNDIR="+dir)
	if err := northd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = northd.Process.Kill()
		_ = northd.Wait()
	})
	return log, northd.Process
}

// northdIsContent fails if ovn-northd has logged a warning or an error.
func northdIsContent(t *testing.T, log string) {
	t.Helper()
	out, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		// Module timeval warns of a machine that gives it no CPU time.
		if strings.Contains(line, "|ERR|") || strings.Contains(line, "|WARN|") && !strings.Contains(line, "|timeval|") {
			t.Errorf("northd's log: %s", line)
		}
	}
}

func (s *server) sbctl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, "ovn-sbctl", append([]string{"--db=unix:" + s.socket, "--no-leader-only"}, args...)...)
}

// withPorts returns logical flows with the protocol and port of a load balancer as in OVN 23.03. Those of 25.09 match
// registers that have them.
func withPorts(flows string) string {
	protocols := map[string]string{"6": "tcp", "17": "udp", "132": "sctp"}
	registers := regexp.MustCompile(`reg1\[16\.\.23\] == (\d+) && reg1\[0\.\.15\] == (\d+)`)
	return registers.ReplaceAllStringFunc(flows, func(match string) string {
		found := registers.FindStringSubmatch(match)
		return fmt.Sprintf("%[1]s && %[1]s.dst == %[2]s", protocols[found[1]], found[2])
	})
}

// A real northd translates our rows to the intended flows without warnings, and reports which chassis carries a
// shard.
func TestNorthdAcceptsOurRows(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	log := translate(t, nb, sb)
	d, events := dial(t, nb, sb)
	configure(t, d, topology(1))
	apply(t, d, service(1, 1, "10.244.1.1", "10.244.1.2", "fd00:10:244:1::1"))
	apply(t, d, service(1, 1, "10.244.1.2", "fd00:10:244:1::1"))
	apply(t, d, service(2, 1, "10.244.1.1", "10.244.1.2", "10.244.1.3"))
	apply(t, d, service(2, 1, "10.244.1.1", "10.244.1.3"))
	few := service(3, 1, "10.244.1.3")
	few.SourceRanges = map[world.Family][]netip.Prefix{
		world.IPv4: prefixes("192.0.2.0/24", "198.51.100.7/32"), world.IPv6: nil,
	}
	for _, vip := range few.VIPs {
		few.Listeners = append(few.Listeners, plan.Listener{VIP: vip.Addr, Protocol: world.SCTP, Port: 99})
	}
	for _, addr := range []string{"10.244.1.1:99", "10.244.1.3:99"} {
		few.Listeners[4].Backends = append(few.Listeners[4].Backends,
			plan.Backend{Addr: netip.MustParseAddrPort(addr), Node: "n3"})
	}
	slices.SortStableFunc(few.Listeners, func(a, b plan.Listener) int { return a.VIP.Compare(b.VIP) })
	apply(t, d, few, onHost(service(4, 1)))
	nb.sync(t)

	flows := withPorts(sb.sbctl(t, "lflow-list"))
	for _, want := range []string{
		`ip4.dst == 10.50.1.1 && tcp && tcp.dst == 80 && is_chassis_resident\("cr-slb-lan-0-ext"\)\), action=\(ct_lb_mark\(backends=240.1.2.0:8080,240.1.2.0:8080; hash_fields="ip_dst"`,
		`ip4.dst == 10.50.1.2 && tcp && tcp.dst == 80 .*ct_lb_mark\(backends=240.1.1.0:8080,240.1.1.0:8080,240.1.3.0:8080; hash_fields="ip_dst,ip_src,tcp_dst,tcp_src"`,
		`ip6.dst == fd00:50::1:1 && udp && udp.dst == 53 .*ct_lb_mark\(backends=\[fd3e:5b1c:1::1:0\]:8053`,
		`ip6.dst == fd00:50::1:2 && tcp && tcp.dst == 80.*reject`,
		`lr_in_policy .*priority=700 .*match=\(is_chassis_resident\("k8s-n3"\) && inport == "rtos-n3" && \(sctp.src == \{99\} \|\| tcp.src == \{8080\} \|\| udp.src == \{8053\}\) && ip4.src == \$slb_backends_n3_ip4 && ip4.dst != \{.*\}\), action=\(reg0 = 100.64.254.251;`,
		`lr_in_policy .*priority=700 .*match=\(inport == "rtoj-ovn_cluster_router" && ip6.src == fd3e:5b1c::/ffff:ffff::ffff\), action=\(xxreg0 = fd98::ffff:ffff:ffff:fffe;`,
		`ip4.dst == 10.50.1.3 && sctp && sctp.dst == 99 .*ct_lb_mark\(backends=240.1.1.0:99,240.1.3.0:99; hash_fields="ip_dst,ip_src,sctp_dst,sctp_src"`,
		`ip6.dst == fd00:50::1:3 && sctp && sctp.dst == 99.*reject`,
		`ls_in_acl(_eval)? +\), priority=2000 , match=\(\(?ip4.dst == 10.50.1.3 && sctp.dst == \{99\}\)`,
		`ls_in_acl(_eval)? +\), priority=2001 , match=\(\(?ip4.dst == 10.50.1.3 && tcp.dst == \{80\} && ip4.src == \{192.0.2.0/24, 198.51.100.7/32\}\)\)?, action=\((reg8\[16\] = 1; )?next;\)`,
		`ls_in_acl(_eval)? +\), priority=2000 , match=\(\(?ip4.dst == 10.50.1.3 && tcp.dst == \{80\}\)\)?, action=\((drop;|/\* drop \*/|reg8\[17\] = 1; next;)`,
		`ls_in_acl(_eval)? +\), priority=2000 , match=\(\(?ip6.dst == fd00:50::1:3 && udp.dst == \{53\}\)\)?, action=\((drop;|/\* drop \*/|reg8\[17\] = 1; next;)`,
		`lr_in_dnat .*ct.new .*ip4.dst == 240.1.2.0 && tcp && tcp.dst == 8080\), action=\(flags.skip_snat_for_lb = 1; ct_lb_mark\(backends=10.244.1.2:8080; hash_fields="ip_dst"; skip_snat\);\)`,
		`lr_in_dnat .*ct.new .*ip6.dst == fd3e:5b1c:1::1:0 && udp && udp.dst == 8053\), action=\(flags.skip_snat_for_lb = 1; ct_lb_mark\(backends=\[fd00:10:244:1::1\]:8053; hash_fields="ip_dst"; skip_snat\);\)`,
		`lr_in_dnat .*ct.new .*ip4.dst == 240.2.0.0 && tcp && tcp.dst == 9080\), action=\(flags.force_snat_for_lb = 1; ct_lb_mark\(backends=172.18.0.11:9080; hash_fields="ip_dst"; force_snat\);\)`,
		`lr_out_snat .*flags.force_snat_for_lb == 1 && ip6\), action=\(ct_snat\(fd69::3\);\)`,
		`lr_in_policy .*priority=700 .*inport == "rtoj-ovn_cluster_router" && ip4.src == 169.254.169.3 && ip4.dst == 172.18.0.11 && \(tcp.dst == \{9080\} \|\| udp.dst == \{9053\} \|\| ip.is_frag\)\), action=\(reg0 = 10.244.2.2;`,
		`lr_in_policy .*priority=700 .*inport == "rtos-n1" && ip6.src == fd00:18::b && ip6.dst == fd69::3 && \(tcp.src == \{9080\} \|\| .*\)\), action=\(xxreg0 = fd98::ffff:ffff:ffff:fefd;`,
		`lr_in_policy .*priority=699 .*ip4.src == 169.254.169.3 \|\| ip4.dst == 169.254.169.3\), action=\((drop;|/\* drop \*/)`,
	} {
		if !regexp.MustCompile(want).MatchString(flows) {
			t.Errorf("no flow %s", want)
		}
	}
	northdIsContent(t, log)

	shard := world.ShardID{Domain: "lan"}
	if c, ok := shardStates(d)[shard]; !ok || c.Active != "" {
		t.Errorf("state %v before any chassis", c)
	}
	d.claimObserver.mu.Lock()
	d.claimObserver.settle = time.Hour // TestClaimsSettle is about that
	d.claimObserver.mu.Unlock()
	drain(events)
	sb.sbctl(t, "chassis-add", "c2", "geneve", "127.0.0.2")
	sb.sbctl(t, "lsp-bind", "cr-slb-lan-0-ext", "c2")
	waitFor(t, events, ShardStates)
	await.True(t, "c2 claims the shard", func() bool { return shardStates(d)[shard].Active == "c2" })
	if shardStates(d)[shard].Settled {
		t.Error("a claim has settled at once")
	}
}
