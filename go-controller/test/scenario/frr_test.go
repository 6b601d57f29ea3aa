// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
)

// frrNamespace is the namespace of frr-k8s.
const frrNamespace = "frr-k8s-system"

func frrCommands() []command {
	return []command{
		{"frr-k8s", "install | remove | refuse TEXT | away | accept",
			"add or remove frr-k8s' kinds, or let its webhook refuse objects, or be away",
			func(c *cluster, args []string) ([]string, error) {
				switch args[0] {
				case "install":
					c.server.AddKinds(apiserver.FRRKinds())
					return nil, c.applyManifest("{apiVersion: v1, kind: Namespace, metadata: {name: " + frrNamespace + "}}")
				case "remove":
					c.server.RemoveKinds(apiserver.FRRKinds())
				case "away":
					c.server.Refuse("frrconfigurations", apiserver.WebhookAway)
				default:
					c.server.Refuse("frrconfigurations", strings.Join(args[1:], " "))
				}
				return nil, nil
			}},
		{"route-advertisements", "install | remove", "add or remove OVN-Kubernetes' kind RouteAdvertisements",
			func(c *cluster, args []string) ([]string, error) {
				if args[0] == "install" {
					c.server.AddKinds(apiserver.RouteAdvertisements())
				} else {
					c.server.RemoveKinds(apiserver.RouteAdvertisements())
				}
				return nil, nil
			}},
		{"frr-reports", "NODE SESSION [PREFIX...]",
			"let frr-k8s report the state of the session of a node with 10.50.0.1, and what the node runs",
			func(c *cluster, args []string) ([]string, error) {
				return nil, c.reportFRR(args[0], args[1], args[2:])
			}},
		{"frr-pod", "NODE ready | removed | mirror | CONTAINER REASON",
			"the Pod of frr-k8s on a node: ready, removed, or with a container that waits for a reason; or a mirror Pod of " +
				"the node's kubelet with the same containers",
			func(c *cluster, args []string) ([]string, error) { return nil, c.setFRRPod(args[0], args[1:]) }},
		{"frr-raw", "NODE TEXT -> TEXT", "replace text in what the node runs, as rawConfig of others does",
			func(c *cluster, args []string) ([]string, error) {
				before, after, _ := strings.Cut(strings.Join(args[1:], " "), " -> ")
				return nil, c.replaceRunning(args[0], before, after)
			}},
		{"frr-flaps", "NODE TIMES", "let the session of a node be Idle for a second and then Established for a second",
			func(c *cluster, args []string) ([]string, error) {
				times, err := strconv.Atoi(args[1])
				for i := 0; i < 2*times && err == nil; i++ {
					state := []string{"Idle", "Established"}[i%2]
					err = c.patch("bgpsessionstate/"+frrNamespace+"/"+args[0],
						fmt.Sprintf(`{"status": {"bgpStatus": %q}}`, state), "status")
					<-time.After(time.Second)
				}
				return nil, err
			}},
		{"frr", "", "the FRRConfigurations: their nodes, peers, prefixes and communities",
			func(c *cluster, _ []string) ([]string, error) {
				list, err := c.listAll("frrconfiguration")
				if err != nil {
					return nil, err
				}
				var out []string
				for _, o := range list.Items {
					out = append(out, configurationText(&o))
				}
				return out, nil
			}},
	}
}

// setFRRPod replaces the Pod of frr-k8s on a node. A mirror Pod belongs to its node, and is in addition.
func (c *cluster) setFRRPod(node string, is []string) error {
	name, owner, frr, status := "frr-k8s-"+node, "apiVersion: apps/v1, kind: DaemonSet", "{}", "{}"
	switch is[0] {
	case "mirror":
		name, owner = "mirror-"+node, "apiVersion: v1, kind: Node"
	case "frr":
		frr = "{waiting: {reason: " + is[1] + "}}"
	case "frr-status":
		status = "{waiting: {reason: " + is[1] + "}}"
	}
	if is[0] == "removed" {
		client, name, err := c.split("pod/" + frrNamespace + "/" + name)
		if err != nil {
			return err
		}
		return client.Delete(c.t.Context(), name, metav1.DeleteOptions{})
	}
	return c.applyManifest(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s, ownerReferences: [{%s, name: %s, uid: "1", controller: true}]}
spec: {nodeName: %s, containers: [{name: controller}, {name: frr}, {name: frr-status}]}
status:
  containerStatuses:
  - {name: frr, ready: %t, state: %s, restartCount: 0, image: "", imageID: ""}
  - {name: frr-status, ready: %t, state: %s, restartCount: 0, image: "", imageID: ""}
`, frrNamespace, name, owner, node, node, frr == "{}", frr, status == "{}", status))
}

func (c *cluster) reportFRR(node, session string, prefixes []string) error {
	var config strings.Builder
	for i, p := range prefixes {
		fmt.Fprintf(&config, "ip prefix-list 10.50.0.1-allowed-ipv4 seq %d permit %s\n", i+1, p)
	}
	config.WriteString("route-map 10.50.0.1-out permit 1\n match ip address prefix-list 10.50.0.1-allowed-ipv4\nexit\n" +
		"router bgp 64512\n no bgp network import-check\n address-family ipv4 unicast\n" +
		"  neighbor 10.50.0.1 activate\n  neighbor 10.50.0.1 route-map 10.50.0.1-out out\n")
	for _, p := range prefixes {
		fmt.Fprintf(&config, "  network %s\n", p)
	}
	config.WriteString(" exit-address-family\nexit\n")
	objects := map[string]string{
		"frrnodestate/" + node: fmt.Sprintf(`{"status": {"runningConfig": %q, "lastConversionResult": "success", `+
			`"lastReloadResult": "success"}}`, config.String()),
		"bgpsessionstate/" + frrNamespace + "/" + node: fmt.Sprintf(
			`{"status": {"node": %q, "peer": "10.50.0.1", "bgpStatus": %q}}`, node, session),
	}
	_, err := c.get("pod/" + frrNamespace + "/frr-k8s-" + node)
	if errors.IsNotFound(err) {
		err = c.setFRRPod(node, []string{"ready"})
	}
	if err != nil {
		return err
	}
	err = c.applyManifest(fmt.Sprintf(`
{apiVersion: frrk8s.metallb.io/v1beta1, kind: FRRNodeState, metadata: {name: %s}}
---
{apiVersion: frrk8s.metallb.io/v1beta1, kind: BGPSessionState, metadata: {namespace: %s, name: %[1]s}}
`, node, frrNamespace))
	for object, status := range objects {
		if err == nil {
			err = c.patch(object, status, "status")
		}
	}
	return err
}

func (c *cluster) replaceRunning(node, before, after string) error {
	list, err := c.listAll("frrnodestate")
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		text, _, _ := unstructured.NestedString(o.Object, "status", "runningConfig")
		if o.GetName() != node {
			continue
		}
		if !strings.Contains(text, before) {
			return fmt.Errorf("node %s does not run %q", node, before)
		}
		text = strings.Replace(text, before, after, 1)
		return c.patch("frrnodestate/"+node, fmt.Sprintf(`{"status": {"runningConfig": %q}}`, text), "status")
	}
	return fmt.Errorf("no FRRNodeState %s", node)
}

// configurationText describes an FRRConfiguration without the hash in its name.
func configurationText(o *unstructured.Unstructured) string {
	routers, _, _ := unstructured.NestedSlice(o.Object, "spec", "bgp", "routers")
	router, _ := routers[0].(map[string]any)
	neighbors, _, _ := unstructured.NestedSlice(router, "neighbors")
	prefixes, _, _ := unstructured.NestedStringSlice(router, "prefixes")
	expressions, _, _ := unstructured.NestedSlice(o.Object, "spec", "nodeSelector", "matchExpressions")
	text := o.GetName()
	if len(expressions) > 0 {
		is, _ := expressions[0].(map[string]any)
		text += fmt.Sprintf(" on %v", is["values"])
	}
	text += fmt.Sprintf(": AS %v", router["asn"])
	for _, n := range neighbors {
		is, _ := n.(map[string]any)
		text += fmt.Sprintf(", neighbor %v AS %v", is["address"], is["asn"])
		communities, _, _ := unstructured.NestedSlice(is, "toAdvertise", "withCommunity")
		for _, community := range communities {
			of, _ := community.(map[string]any)
			text += fmt.Sprintf(", %v for %v", of["community"], of["prefixes"])
		}
	}
	if len(prefixes) > 0 {
		text += ", prefixes " + strings.Join(prefixes, " ")
	}
	return text
}
