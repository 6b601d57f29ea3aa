// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// StartController starts a replica of the controller with the configuration of dist/manifests/sdn.
func (s *Site) StartController(ctx context.Context, name string) (*proc.Process, error) {
	kubeconfig, err := s.Plane.ServiceAccountKubeconfig(namespace, "ovnkube-slb")
	if err != nil {
		return nil, err
	}
	return proc.Start(ctx, proc.Spec{Name: name, Dir: s.Dir, Nice: proc.Machine, Restart: true, Args: []string{
		s.Program, "controller",
		"--k8s-kubeconfig=" + kubeconfig, "--network-type=OpenShiftSDN",
		"--leader-elect", "--leader-elect-identity=" + name, "--leader-elect-lease-duration=2s",
		"--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=400ms",
		"--cluster-subnets=10.244.0.0/16,fd00:244::/32", "--k8s-service-cidrs=10.96.0.0/16,fd00:10:96::/112"}})
}

// Leader waits until a replica renews its Lease, and returns its name. Until the Lease expires again, no other replica
// leads. An earlier read of the Lease may name a replica that has ended, or none.
func (s *Site) Leader(ctx context.Context) (name string, err error) {
	var before coordinationv1.LeaseSpec
	err = poll.Within(ctx, poll.Limit, func(ctx context.Context) error {
		lease, err := s.lease(ctx)
		if err != nil {
			return err
		}
		last := before
		before = *lease
		if lease.HolderIdentity == nil || *lease.HolderIdentity == "" || last.HolderIdentity == nil ||
			*last.HolderIdentity != *lease.HolderIdentity || !last.RenewTime.Before(lease.RenewTime) {
			return fmt.Errorf("no replica renews Lease %v", lease)
		}
		name = *lease.HolderIdentity
		return nil
	})
	return name, err
}

// Terms returns how often the leader has changed.
func (s *Site) Terms(ctx context.Context) (int32, error) {
	lease, err := s.lease(ctx)
	if err != nil || lease.LeaseTransitions == nil {
		return 0, err
	}
	return *lease.LeaseTransitions, nil
}

// LastLeader returns the replica that holds the Lease, while all of them are stopped, and how often the leader has
// changed. It writes the Lease, so that a write of a replica fails that the API server has not finished.
func (s *Site) LastLeader(ctx context.Context) (name string, terms int32, err error) {
	leases := s.Client.CoordinationV1().Leases(namespace)
	lease, err := leases.Get(ctx, "ovnkube-slb", metav1.GetOptions{})
	if err != nil {
		return "", 0, err
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, "test/stopped", "true")
	if lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return "", 0, err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", 0, errors.New("no replica has the Lease")
	}
	if lease.Spec.LeaseTransitions != nil {
		terms = *lease.Spec.LeaseTransitions
	}
	return *lease.Spec.HolderIdentity, terms, nil
}

func (s *Site) lease(ctx context.Context) (*coordinationv1.LeaseSpec, error) {
	lease, err := s.Client.CoordinationV1().Leases(namespace).Get(ctx, "ovnkube-slb", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &lease.Spec, nil
}

// MetricsPort is the port on which agents serve their metrics, on all addresses of their node.
const MetricsPort = 9485

// StartAgent starts the agent of a node.
func (s *Site) StartAgent(ctx context.Context, node string) (*proc.Process, error) {
	return s.StartDaemon(ctx, node, "agent-"+node, "ovnkube-slb-sdn", "--enable-sdn", "--enable-l2-guard=false",
		fmt.Sprintf("--metrics-bind-address=:%d", MetricsPort))
}

// StartDaemon starts a daemon on a node with the permissions of a service account.
func (s *Site) StartDaemon(ctx context.Context, node, name, account string, flags ...string) (*proc.Process, error) {
	kubeconfig, err := s.Plane.PodKubeconfig(namespace, account, node)
	if err != nil {
		return nil, err
	}
	return proc.Start(ctx, proc.Spec{Name: name, Dir: s.Dir, Netns: s.Netns(node), Nice: proc.Machine,
		Args: append([]string{s.Program, "node", "--k8s-kubeconfig=" + kubeconfig, "--node-name=" + node}, flags...)})
}

// Occupy starts another program that listens on a TCP port of a node.
func (s *Site) Occupy(ctx context.Context, node string, port int) (*proc.Process, error) {
	return proc.Start(ctx, proc.Spec{Name: fmt.Sprintf("occupant-%s-%d", node, port), Dir: s.Dir, Netns: s.Netns(node),
		Env:  []string{role + "=responder"},
		Args: []string{s.self, "-name", "occupant", "-tcp", fmt.Sprint(port)}})
}

// CutAPI makes a node reject its own connections to the API server. The controller can still reach the node.
func (s *Site) CutAPI(ctx context.Context, node string) error {
	at, err := url.Parse(s.Plane.RESTConfig().Host)
	if err != nil {
		return err
	}
	rules := fmt.Sprintf("table inet api { chain out { type filter hook output priority 0; ip daddr %s tcp dport %s "+
		"reject with tcp reset; }; }", at.Hostname(), at.Port())
	_, err = run(ctx, "ip", "netns", "exec", s.Netns(node), "nft", rules)
	return err
}

// RestoreAPI reverts CutAPI.
func (s *Site) RestoreAPI(ctx context.Context, node string) error {
	_, err := run(ctx, "ip", "netns", "exec", s.Netns(node), "nft", "delete table inet api")
	return err
}

// PrepareChurn adds an unconnected interface with many addresses that are not ours to a node.
func (s *Site) PrepareChurn(ctx context.Context, node string) error {
	const static = 2000
	lines := []string{"link add churn type bridge", "link set churn up"}
	for i := range static {
		lines = append(lines, fmt.Sprintf("addr add 10.99.%d.%d/32 dev churn", i/250, i%250))
	}
	return ip.Batch(ctx, s.Netns(node), lines...)
}

// Churn changes further addresses of the interface of PrepareChurn continuously until the context ends, and then
// removes the interface.
func (s *Site) Churn(ctx context.Context, node string) error {
	const changing = 500
	var add, del []string
	for i := range changing {
		add = append(add, fmt.Sprintf("addr add 10.98.%d.%d/32 dev churn", i/250, i%250))
		del = append(del, fmt.Sprintf("addr del 10.98.%d.%d/32 dev churn", i/250, i%250))
	}
	for ctx.Err() == nil {
		if err := ip.Batch(ctx, s.Netns(node), slices.Concat(add, del)...); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return ip.Batch(context.WithoutCancel(ctx), s.Netns(node), "link del churn")
}

// Agent returns the process started by StartAgent.
func (s *Site) Agent(node string) (*proc.Process, error) { return proc.Find(s.Dir, "agent-"+node) }

// AddServices creates dual-stack Services, named by prefix and a number, and waits until they have addresses.
func (s *Site) AddServices(ctx context.Context, prefix string, count int) error {
	dual := corev1.IPFamilyPolicyRequireDualStack
	for i := range count {
		_, err := s.Client.CoreV1().Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i)},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, IPFamilyPolicy: &dual,
				Ports: []corev1.ServicePort{{Name: "tcp", Port: Port, Protocol: corev1.ProtocolTCP},
					{Name: "udp", Port: Port, Protocol: corev1.ProtocolUDP}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// Held returns the node to which each address is assigned. It is an error if an address is assigned to two nodes.
func (s *Site) Held(ctx context.Context) (map[netip.Addr]string, error) {
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	held := map[netip.Addr]string{}
	for _, n := range nodes.Items {
		list, err := sdn.Parse(n.Annotations[v1alpha1.AnnotationVIPs])
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		for _, h := range list {
			if other := held[h.Addr]; other != "" {
				return nil, fmt.Errorf("%s is held by %s and %s", h.Addr, other, n.Name)
			}
			held[h.Addr] = n.Name
		}
	}
	return held, nil
}

// Kernel returns the addresses of the pool in the kernel of a node.
func (s *Site) Kernel(node string) (map[netip.Addr]bool, error) {
	for {
		has, err := s.kernel(node)
		if !errors.Is(err, unix.EINTR) { // The addresses changed meanwhile. The socket may still have the rest of its answer.
			return has, err
		}
	}
}

func (s *Site) kernel(node string) (_ map[netip.Addr]bool, err error) {
	ns, err := netns.GetFromName(s.Netns(node))
	if err != nil {
		return nil, fmt.Errorf("network namespace of node %s: %w", node, err)
	}
	defer func() { err = errors.Join(err, ns.Close()) }()
	handle, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink of node %s: %w", node, err)
	}
	defer handle.Close()
	link, err := handle.LinkByName("eth1")
	if err != nil {
		return nil, fmt.Errorf("eth1 of node %s: %w", node, err)
	}
	all, err := handle.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("addresses of node %s: %w", node, err)
	}
	has := map[netip.Addr]bool{}
	for _, a := range all {
		addr, _ := netip.AddrFromSlice(a.IP) // the kernel's are valid
		if ones, bits := a.Mask.Size(); ones == bits {
			has[addr.Unmap()] = true
		}
	}
	return has, nil
}

// Session is an activity of the client that runs until End is called. It has the nice value of the backends, so that
// it measures the product and not how long it waits for a processor.
type Session struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

func (s *Site) client(ctx context.Context, as string, args ...string) (*Session, error) {
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", s.Netns("client"), s.self}, args...)...)
	cmd.Env = append(os.Environ(), role+"="+as)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	proc.SetNice(cmd.Process.Pid, proc.Foremost)
	return &Session{cmd, stdin, bufio.NewReader(stdout)}, nil
}

// Probe sends requests to Services until the session ends. It returns once all of them have answered.
func (s *Site) Probe(ctx context.Context, specs ...probe.Spec) (*Session, error) {
	var texts []string
	for _, spec := range specs {
		texts = append(texts, spec.String())
	}
	return s.answered(s.client(ctx, "probe", texts...))
}

// answered waits until each target of the client has answered once.
func (s *Site) answered(session *Session, err error) (*Session, error) {
	if err != nil {
		return nil, err
	}
	line, err := session.out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != probe.AnsweredLine {
		err = fmt.Errorf("the client reports %q", line)
	}
	return session, err
}

// Watch probes the segment for addresses until the session ends. It returns once each address has been answered for.
func (s *Site) Watch(ctx context.Context, addrs ...netip.Addr) (*Session, error) {
	args := []string{"eth1"}
	for _, a := range addrs {
		args = append(args, a.String())
	}
	return s.answered(s.client(ctx, "watch", args...))
}

// End ends a session and decodes its results.
func (s *Session) End(into any) error {
	if err := s.stdin.Close(); err != nil {
		return err
	}
	if err := json.NewDecoder(s.out).Decode(into); err != nil {
		return err
	}
	return s.cmd.Wait()
}
