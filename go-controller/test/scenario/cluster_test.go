// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/tools/txtar"
	"k8s.io/client-go/dynamic"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/fabric"
)

// cluster is the cluster of one scenario.
type cluster struct {
	t       *testing.T
	archive *txtar.Archive
	kinds   apiserver.Kinds
	server  *apiserver.Server
	fabric  *fabric.Fabric
	user    dynamic.Interface
	// contract are the kinds of Cluster API's contract that the server has.
	contract apiserver.Kinds
	// interconnect is set if each node has its own zone.
	interconnect bool
	processes    []*process
	// occupied are the addresses that a host outside of the cluster has, with its MAC address.
	occupied map[netip.Addr]string
	// restore restores the last backup of the API server.
	restore func()
	// shown are the versions of the events that have been shown.
	shown map[string]string
}

// namespaces are those that scenarios use, besides those that every cluster has.
const namespaces = `
{apiVersion: v1, kind: Namespace, metadata: {name: ` + v1alpha1.GuardsNamespace + `}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ` + v1alpha1.PasswordsNamespace + `}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: bank, labels: {tier: gold}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: cafe}}
`

func newCluster(t *testing.T, kinds apiserver.Kinds, archive *txtar.Archive) *cluster {
	t.Helper()
	server, err := apiserver.New(kinds)
	if err != nil {
		t.Fatal(err)
	}
	user, err := dynamic.NewForConfig(server.User().Config())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, archive: archive, kinds: kinds, server: server, fabric: fabric.New(), user: user,
		occupied: map[netip.Addr]string{}, shown: map[string]string{}}
	if err := c.applyManifest(namespaces); err != nil {
		t.Fatal(err)
	}
	return c
}

// run performs the commands of a script and returns it with their results.
func (c *cluster) run(script string) string {
	var out strings.Builder
	for line := range strings.Lines(script) {
		command, is := strings.CutPrefix(line, "> ")
		if !is {
			if text := strings.TrimSpace(line); text == "" || strings.HasPrefix(text, "#") {
				out.WriteString(line)
			}
			continue // a former result
		}
		out.WriteString(line)
		result, err := c.perform(strings.TrimSpace(command))
		if err != nil {
			result = append(result, "error: "+err.Error())
		}
		for _, r := range result {
			for part := range strings.SplitSeq(strings.TrimSpace(r), "\n") {
				if strings.TrimSpace(part) != "" {
					out.WriteString(strings.TrimRight(part, " ") + "\n")
				}
			}
		}
	}
	return out.String()
}

// perform performs one command and waits until nothing happens any more without the clock.
func (c *cluster) perform(line string) ([]string, error) {
	words := strings.Fields(line)
	i := slices.IndexFunc(commands(), func(cmd command) bool { return cmd.name == words[0] })
	if i < 0 {
		var usage strings.Builder
		for _, cmd := range commands() {
			fmt.Fprintf(&usage, "  %s %s: %s\n", cmd.name, cmd.args, cmd.what)
		}
		c.t.Fatalf("there is no command %q. The commands are:\n%s", words[0], usage.String())
	}
	result, err := commands()[i].run(c, words[1:])
	synctest.Wait()
	return result, err
}

// addNodes creates nodes as Kubernetes and OVN-Kubernetes would.
func (c *cluster) addNodes(first, last int) error {
	for i := first; i <= last; i++ {
		name := fmt.Sprintf("n%d", i)
		c.fabric.AddNode(fabric.Node{Name: name, Chassis: fmt.Sprintf("chassis-%d", i), Bridges: "physnet:br-lan",
			NodeFacts: rows.NodeFacts{
				Subnets:  prefixes("10.244.%d.0/24 fd00:10:244:%d::/64", i, i),
				Join:     prefixes("100.64.0.%d/16 fd98::%d/64", i+1, i+1),
				External: prefixes("172.18.0.%d/24 fd00:172:18::%d/64", 10+i, 10+i),
				Transit:  prefixes("100.88.0.0/16 fd97::/64"),
			}})
		annotations := fmt.Sprintf(`
    k8s.ovn.org/node-chassis-id: chassis-%d
    k8s.ovn.org/l3-gateway-config: '{"default":{"mode":"local","bridge-id":"br-ex",
      "ip-addresses":["172.18.0.%d/24","fd00:172:18::%d/64"]}}'
    k8s.ovn.org/host-cidrs: '["172.18.0.%d/24","fd00:172:18::%d/64"]'
    k8s.ovn.org/node-subnets: '{"default":["10.244.%d.0/24","fd00:10:244:%d::/64"]}'
    k8s.ovn.org/node-masquerade-subnet: '{"ipv4":"169.254.169.0/29","ipv6":"fd69::/125"}'`,
			i, 10+i, 10+i, 10+i, 10+i, i, i)
		if c.interconnect {
			annotations += fmt.Sprintf(`
    k8s.ovn.org/zone-name: %s
    k8s.ovn.org/node-transit-switch-port-ifaddr: '{"ipv4":"100.88.0.%d/16","ipv6":"fd97::%d/64"}'`, name, i+1, i+1)
		}
		manifest := fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata:
  name: %s
  labels: {kubernetes.io/hostname: %s}
  annotations:%s
`, name, name, annotations)
		if err := c.applyManifest(manifest); err != nil {
			return err
		}
		status := fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":"172.18.0.%d"}]}}`, 10+i)
		if err := c.patch("node/"+name, status, "status"); err != nil {
			return err
		}
	}
	return nil
}

func prefixes(format string, args ...any) []netip.Prefix {
	var out []netip.Prefix
	for text := range strings.FieldsSeq(fmt.Sprintf(format, args...)) {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}
