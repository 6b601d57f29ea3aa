// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// etcd listens on Unix sockets. Their paths are relative to the run directory, which is the working directory of both
// sides. This needs no port, and the path cannot exceed the size of a socket address (108 bytes, unix(7)).
const (
	etcdClientURL = "unix://etcd.sock"
	etcdPeerURL   = "unix://etcd-peer.sock"
	// etcdNowhere is a placeholder for the URLs that etcd must advertise, in a form that its flags accept. The only member
	// of a cluster has no peer that would use them.
	etcdNowhere = "http://localhost:0"
)

// specs returns the processes in start order. The API server starts in parallel with etcd because it needs etcd only
// later in its startup.
func (c Config) specs(cp *ControlPlane) []proc.Spec {
	spec := func(name string, args []string) proc.Spec {
		return proc.Spec{Name: name, Dir: c.Dir, Nice: proc.Machine, Args: append([]string{c.Bin.Path(name)}, args...)}
	}
	apiserver := spec(APIServerProcess, slices.Concat(c.apiServerArgs(), c.APIServerArgs))
	apiserver.Ready = cp.ready
	return []proc.Spec{
		spec(EtcdProcess, etcdArgs()),
		apiserver,
		spec(ControllerManagerProcess, slices.Concat(cp.controllerManagerArgs(), c.ControllerManagerArgs)),
	}
}

func etcdArgs() []string {
	return []string{
		"--name=lab", "--data-dir=etcd-data", "--log-level=warn",
		"--listen-client-urls=" + etcdClientURL, "--advertise-client-urls=" + etcdNowhere,
		"--listen-peer-urls=" + etcdPeerURL, "--initial-advertise-peer-urls=" + etcdNowhere,
		"--initial-cluster=lab=" + etcdNowhere,
		// The page cache outlives every process of the lab. Only a crash of the machine could lose data, and the data of a
		// lab is expendable.
		"--unsafe-no-fsync",
	}
}

func (c Config) apiServerArgs() []string {
	cidrs := make([]string, len(c.ServiceCIDRs))
	for i, cidr := range c.ServiceCIDRs {
		cidrs[i] = cidr.String()
	}
	return []string{
		"--etcd-servers=" + etcdClientURL,
		"--bind-address=" + c.Address.String(),
		"--secure-port=" + strconv.Itoa(int(c.Port)),
		// By default it uses the default route, which a network namespace may not have.
		"--advertise-address=" + c.Address.String(),
		"--tls-cert-file=" + certPath(c.Dir, APIServerProcess),
		"--tls-private-key-file=" + keyPath(c.Dir, APIServerProcess),
		"--client-ca-file=" + certPath(c.Dir, authorityName),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + keyPath(c.Dir, "service-account"),
		"--service-account-signing-key-file=" + keyPath(c.Dir, "service-account"),
		"--service-cluster-ip-range=" + strings.Join(cidrs, ","),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--disable-admission-plugins=ServiceAccount", // Pods here mount no tokens.
		"--endpoint-reconciler-type=none",            // Nothing in the lab uses the API through its Service.
	}
}

func (c *ControlPlane) controllerManagerArgs() []string {
	controllers := []string{
		"deployment-controller", "replicaset-controller", "endpointslice-controller", // Deployment to Pods to EndpointSlices.
		"garbage-collector-controller", "namespace-controller", // Deletion cascades to owned objects.
		"clusterrole-aggregation-controller", // It fills the roles view, edit and admin.
	}
	qps, burst := strconv.Itoa(clientQPS), strconv.Itoa(clientBurst)
	return []string{
		"--kubeconfig=" + c.AdminKubeconfig(),
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=" + qps, "--kube-api-burst=" + burst,
		"--concurrent-service-endpoint-syncs=20",
	}
}

// ready checks what callers need first: the API with the default RBAC roles, and the namespace default.
func (c *ControlPlane) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.rest)
	if err != nil {
		return err
	}
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
		if err := get(ctx, client, c.server+path); err != nil {
			return err
		}
	}
	return nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return err
}

// ownLoopback returns a random one of the sixteen million addresses of the loopback interface, which need no
// configuration, so that control planes on one machine do not compete for ports.
func ownLoopback() netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(1 + rand.N(254)), byte(rand.N(256)), byte(1 + rand.N(254))})
}

// FreeAddress returns HOST:PORT for a server that a test starts later. Another process would have to guess the host
// to take the port in the meantime: of an address that all share, the kernel gives a closed port to the next who asks.
func FreeAddress() (string, error) {
	host := ownLoopback()
	port, err := freePort(host)
	return netip.AddrPortFrom(host, port).String(), err
}

func freePort(addr netip.Addr) (uint16, error) {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	at, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return 0, fmt.Errorf("listener address: %w", err)
	}
	return at.Port(), nil
}
