// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// plugin runs kubectl slb as a user does.
type plugin struct {
	*cluster
	dir        string
	kubeconfig string
}

func (c *cluster) plugin(t *testing.T) *plugin {
	t.Helper()
	dir := filepath.Dir(built(t, "go-controller/cmd/kubectl-slb", t.TempDir()))
	return &plugin{cluster: c, dir: dir, kubeconfig: c.plane.AdminKubeconfig()}
}

// shell runs a command with kubectl and the plugin in its path. It returns standard output and the exit code.
func (p *plugin) shell(t *testing.T, command string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-c", command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "PATH="+p.dir+":"+
		filepath.Dir(p.plane.Bin().Path("kubectl"))+":"+os.Getenv("PATH"))
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out) + problems.String(), cmd.ProcessState.ExitCode()
}

// expect runs kubectl slb and checks its exit code and parts of its output.
func (p *plugin) expect(t *testing.T, args string, code int, parts ...string) string {
	t.Helper()
	out, got := p.shell(t, "kubectl slb "+args)
	if got != code {
		t.Errorf("kubectl slb %s: exit code %d, want %d:\n%s", args, got, code, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("kubectl slb %s: no %q in\n%s", args, part, out)
		}
	}
	return out
}

// timesOut runs a command that cannot complete with longer and longer timeouts, until one suffices for it to see the
// state in which it is stuck: how long that takes depends on the machine. reset, if not nil, precedes each run.
func (p *plugin) timesOut(t *testing.T, args, state string, reset func(), parts ...string) {
	t.Helper()
	out := ""
	for timeout := time.Second; timeout < await.Limit; timeout *= 2 {
		if reset != nil {
			reset()
		}
		var code int
		out, code = p.shell(t, fmt.Sprintf("kubectl slb %s --timeout %s", args, timeout))
		if code != 1 {
			t.Fatalf("kubectl slb %s: exit code %d, want 1:\n%s", args, code, out)
		}
		if !strings.Contains(out, fmt.Sprintf("within %s (--timeout): %s", timeout, state)) {
			t.Logf("with --timeout %s:\n%s", timeout, out)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("kubectl slb %s: no %q in\n%s", args, part, out)
			}
		}
		return
	}
	t.Errorf("kubectl slb %s never ends with %q:\n%s", args, state, out)
}

// active waits until the status of L2Domain lan shows an active gateway. It is written beside those of the Services.
func (c *cluster) active(t *testing.T, node string) {
	t.Helper()
	eventually(t, "the L2Domain shows the active gateway "+node, func() bool {
		return strings.Contains(c.field(t, "l2domains", "lan", "{.status.shards}"), fmt.Sprintf("\"active\":%q", node))
	})
}

// pluginExplains checks what the plugin shows of a real cluster, and that the commands that it names help.
func pluginExplains(t *testing.T, c *cluster) {
	o, p := databases(t), c.plugin(t)
	c.controller(t, o)
	p.expect(t, "explain web -n "+ns, 1, "no namespace has a Service of this name")
	c.service(t, "web")
	c.endpoints(t, "web", "10.244.1.10", "fd00:10:244:1::10")
	c.condition(t, "web", v1alpha1.ConditionAllocated, v1alpha1.ReasonNoPool)
	p.expect(t, "explain web -n "+ns, 3, "first broken link: pool: NoPool", "there is no IPAddressPool")
	c.apply(t, baseObjects)
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonNoActiveGateway)
	// The status of the domain is written beside those of the Services, not before them.
	eventually(t, "the L2Domain shows its shards", func() bool {
		return c.field(t, "l2domains", "lan", "{.status.shards}") != ""
	})
	p.expect(t, "explain "+ns+"/web", 3, "gateway lan: NoActiveGateway", "ovn-northd")
	o.claim(t, "chassis-2")
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonAnnounced)
	c.active(t, "n2")
	p.expect(t, "explain "+ns+"/web", 0, "reachable", "answers for 10.50.0.1", "1 of 1 endpoint ready")
	p.expect(t, "explain "+ns+"/web --from 198.51.100.7", 0, "source ranges admit the client")
	p.expect(t, "explain "+ns+"/web --from 2001:db8::1", 3, "the client has an IPv6 address, and the Service has none")

	var result struct{ Reachable string }
	out := p.expect(t, "explain "+ns+"/web -o json", 0)
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Reachable != "yes" {
		t.Errorf("-o json: %v: %s", err, out)
	}
	p.expect(t, "status", 0, "Services: 1 of 1 announced", "n2")
	p.expect(t, "bgp", 0, "There is no BGPPeer")
	p.expect(t, "graph", 0, "<svg", "10.50.0.1", "shop/web")
	p.expect(t, "__complete explain -n", 0, ":4")

	c.service(t, "other", func(s *corev1.Service) {
		class := "example.com/other"
		s.Spec.LoadBalancerClass = &class
	})
	out = p.expect(t, "explain other -n "+ns, 3, "OtherClass")
	if _, code := p.shell(t, mending(t, out)); code != 0 {
		t.Errorf("the command that mends it fails:\n%s", out)
	}
	c.condition(t, "other", v1alpha1.ConditionAllocated, v1alpha1.ReasonAllocated)

	c.kubectl(t, "-n", ns, "create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	eventually(t, "the authorizer knows the viewer", func() bool {
		_, err := c.plane.Kubectl(t.Context(), "auth", "can-i", "get", "services", "-n", ns, "--as=viewer")
		return err == nil
	})
	viewer := *p
	var err error
	if viewer.kubeconfig, err = c.plane.Kubeconfig("viewer"); err != nil {
		t.Fatal(err)
	}
	viewer.expect(t, "explain web -n "+ns, 0, "not read, because the API server does not allow it: bfdprofiles, ")
	viewer.expect(t, "explain web -n kube-system", 1, "forbidden")
	viewer.expect(t, "status", 0, "unknown Resources bfdprofiles, ")
	for _, command := range []string{"plan --delete l2domain/lan", "move " + ns + "/web --to n1", "drain n2"} {
		viewer.expect(t, command, 1, "not read, because the API server does not allow it: ", "nodes")
	}
}

// mending returns the command that an explanation names.
func mending(t *testing.T, out string) string {
	t.Helper()
	_, rest, found := strings.Cut(out, "to mend it: ")
	if !found {
		t.Fatalf("no command in\n%s", out)
	}
	command, _, _ := strings.Cut(rest, "\n")
	return command
}

// pluginPlans checks that what plan and drain show is what then happens.
func pluginPlans(t *testing.T, c *cluster) {
	o, p := databases(t), c.plugin(t)
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	address := c.addresses(t, "web")[0]
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonNoActiveGateway)
	o.claim(t, "chassis-2")
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonAnnounced)
	c.active(t, "n2")

	pool, domain, _ := strings.Cut(baseObjects, "---")
	edit := filepath.Join(t.TempDir(), "edit.yaml")
	write := func(text string) {
		if err := os.WriteFile(edit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pool)
	p.expect(t, "plan -f "+edit, 0, "Nothing changes.")
	write(strings.ReplaceAll(pool, "10.50.0.100-", "10.50.0.140-"))
	p.expect(t, "plan -f "+edit, 0, "shop/web: keeps its address: AddressRetained")
	c.kubectl(t, "apply", "-f", edit)
	c.condition(t, "web", v1alpha1.ConditionAllocated, v1alpha1.ReasonAddressRetained)
	if got := c.addresses(t, "web")[0]; got != address {
		t.Errorf("the address is %s, was %s", got, address)
	}
	write(strings.ReplaceAll(domain, "10.50.0.", "10.60.0."))
	p.expect(t, "plan -f "+edit, 3, fmt.Sprintf("loses   shop/web: keeps address %s, but it is not announced", address))
	p.expect(t, "plan --delete l2domain/lan", 3, "loses   shop/web")
	p.expect(t, "plan --delete l2domain/absent", 1, "there is no such object")
	c.kubectl(t, "apply", "-f", edit)
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonNoDomain)
	// The rows follow the status. If the next edit came before, the ports and their claims would stay.
	eventually(t, "the domain has no gateway ports", func() bool { return len(o.gatewayPorts(t)) == 0 })
	write(domain)
	c.kubectl(t, "apply", "-f", edit)
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonNoActiveGateway)
	o.claim(t, "chassis-2")
	c.active(t, "n2")

	p.expect(t, "drain absent", 1, `node "absent": not found`)
	p.expect(t, "drain n2 --dry-run", 0, fmt.Sprintf("changes %s/web: address %s: shard lan/", ns, address),
		"moves from n2 to ", "dry run")
	p.expect(t, "drain n2 --wait=false --reason kernel", 0, "moves from n2 to ", "node n2 drains")
	const excluded = `{.status.excludedNodes[?(@.name=="n2")]}`
	eventually(t, "n2 drains", func() bool {
		is := c.field(t, "l2domains", "lan", excluded)
		return strings.Contains(is, "Draining") && strings.Contains(is, "kernel")
	})
	p.timesOut(t, "drain n2", "shard lan/", nil, "node n2 has not drained within ")
	c.kubectl(t, "label", "node", "n2", corev1.LabelNodeExcludeBalancers+"=")
	p.expect(t, "undrain n2", 0, "node n2 still drains: label "+corev1.LabelNodeExcludeBalancers)
	c.kubectl(t, "label", "node", "n2", corev1.LabelNodeExcludeBalancers+"-")
	p.expect(t, "undrain n2", 0, "node n2 does not drain: it had no annotation "+v1alpha1.AnnotationDrain)
	eventually(t, "n2 no longer drains", func() bool {
		return c.field(t, "l2domains", "lan", excluded) == ""
	})
}
