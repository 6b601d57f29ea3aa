// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// reachable is the beginning of what explained returns for a Service that nothing keeps from its clients.
const reachable = "exit 0, reachable yes"

// link is one link of the path that `kubectl slb explain -o json` shows.
type link struct{ Name, Object, State, Reason, Message string }

func (l link) String() string {
	return strings.TrimSpace(l.Name+" "+l.Object) + ": " + l.Reason + ": " + l.Message
}

// explained returns a function that runs `kubectl slb explain` for a Service of namespace default. It returns "exit
// CODE, reachable ANSWER: LINK OBJECT: REASON: MESSAGE" with the first broken link, or with the links that have a
// weakness.
func explained(service string, args ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		cmd, err := cluster.AdminCommand(ctx, append([]string{plugin, "explain", "default/" + service, "-o", "json"},
			args...)...)
		if err != nil {
			return "", err
		}
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || len(exit.Stderr) > 0) {
			return "", fmt.Errorf("kubectl slb explain %s: %w: %s", service, err, exit.Stderr)
		}
		var result struct {
			Reachable   string
			FirstBroken *link
			Links       []link
		}
		if err := json.Unmarshal(out, &result); err != nil {
			return "", fmt.Errorf("kubectl slb explain %s: %w: %q", service, err, out)
		}
		var shown []string
		for _, l := range result.Links {
			if result.FirstBroken == nil && l.State == "warning" {
				shown = append(shown, l.String())
			}
		}
		if result.FirstBroken != nil {
			shown = []string{result.FirstBroken.String()}
		}
		return fmt.Sprintf("exit %d, reachable %s: %s", cmd.ProcessState.ExitCode(), result.Reachable,
			strings.Join(shown, "; ")), nil
	}
}

// fault is something that keeps clients from a Service, or endangers it, while everything else works.
type fault struct {
	// missing returns why the fault does not exist in the cluster under test, or an empty string. Nil means that it does.
	missing func() string
	// inject causes the fault, and mend reverts it.
	inject, mend func(ctx context.Context)
	// late is the manifest of a Service that is created after the fault, and about which `kubectl slb explain` is asked.
	// If it is empty, that is Service web, which was reachable before.
	late string
	// from adds the client to the question.
	from bool
	// link is what the answer names as the first broken link, "LINK OBJECT: REASON: ", and cause a part of its message.
	answer, link, cause string
	// client is what the client then gets from Service web. Nil means that the client is not asked.
	client types.GomegaMatcher
}

// Answers of `kubectl slb explain`, with their exit codes.
const (
	notReachable = "exit 3, reachable no: "
	notKnown     = "exit 3, reachable unknown: "
	weak         = reachable + ": "
)

// gateway is the only gateway of the L2Domain, so that no other gateway makes up for its faults.
const gateway = "n1"

// fromPod matches the answer of a pod to a client, and noAnswer an error of curl.
func fromPod() types.GomegaMatcher  { return HavePrefix("pod=web-") }
func noAnswer() types.GomegaMatcher { return HavePrefix("curl: (") }

// lateService returns the manifest of a Service with the backends of Service web.
func lateService(annotations, spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: late, annotations: {%s}}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  selector: {app: web}
  ports: [{port: %d, targetPort: 8080}]
  %s
`, annotations, httpPort, spec)
}

// patching returns a function that patches an object.
func patching(kind, name, patch string) func(context.Context) {
	return func(ctx context.Context) { kubectl(ctx, "", "patch", kind, name, "--type=merge", "-p", patch) }
}

// applying returns a function that applies a file of the examples.
func applying(file string) func(context.Context) {
	return func(ctx context.Context) { kubectl(ctx, "", "apply", "-f", examples+file) }
}

// selecting returns a patch of an L2Domain that selects nodes by their host name.
func selecting(node string) string {
	return fmt.Sprintf(`{"spec":{"nodeSelectors":[{"matchLabels":{"kubernetes.io/hostname":%q}}]}}`, node)
}

// must returns a function that does something to the lab.
func must(do func(ctx context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		GinkgoHelper()
		Expect(do(ctx)).To(Succeed())
	}
}

// diagnose injects a fault, checks what `kubectl slb explain` and the client say, mends the fault, and checks them
// again.
func diagnose(ctx context.Context, f fault) {
	GinkgoHelper()
	if f.missing != nil {
		if why := f.missing(); why != "" {
			Skip(why)
		}
	}
	service, asked := "web", []string{}
	Eventually(explained(service)).WithContext(ctx).Should(HavePrefix(reachable), "before the fault")
	if f.from {
		asked = []string{"--from", cluster.ClientAddresses()[0].String()}
	}
	mended := false
	DeferCleanup(func(ctx SpecContext) {
		if !mended {
			f.mend(ctx)
		}
	})
	f.inject(ctx)
	if f.late != "" {
		service = "late"
		kubectl(ctx, f.late, "apply", "-f", "-")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "service", "late") })
	}
	if f.answer == "" {
		f.answer = notReachable
	}
	Eventually(explained(service, asked...)).WithContext(ctx).WithPolling(slow).
		Should(And(HavePrefix(f.answer), ContainSubstring(f.link), ContainSubstring(here(f.cause))))
	vips := addresses(ctx, "web")
	for _, vip := range vips {
		if f.client != nil {
			Eventually(get(netip.AddrPortFrom(vip, httpPort))).WithContext(ctx).Should(f.client, "from %s", vip)
		}
	}

	mended = true
	f.mend(ctx)
	Eventually(explained(service, asked...)).WithContext(ctx).WithPolling(slow).
		Should(And(HavePrefix(reachable), Not(ContainSubstring(f.link))), "after the fault")
	for _, vip := range append(vips, addresses(ctx, service)...) {
		Eventually(get(netip.AddrPortFrom(vip, httpPort))).WithContext(ctx).Should(fromPod(), "from %s", vip)
	}
}

// slow is the interval of questions that cost a process and a dozen requests to the API server.
const slow = 300 * time.Millisecond

// addresses returns the addresses in the status of a Service.
func addresses(ctx context.Context, name string) []netip.Addr {
	GinkgoHelper()
	s, err := service(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	var addrs []netip.Addr
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		addrs = append(addrs, netip.MustParseAddr(ingress.IP))
	}
	return addrs
}
