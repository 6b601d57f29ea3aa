// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
)

func objectCommands() []command {
	return []command{
		{"apply", "FILE...", "create the objects in files of the scenario, or merge them into those that exist",
			func(c *cluster, args []string) ([]string, error) {
				for _, name := range args {
					manifest, err := c.file(name)
					if err == nil {
						err = c.applyManifest(manifest)
					}
					if err != nil {
						return nil, err
					}
				}
				return nil, nil
			}},
		{"delete", "OBJECT...", "delete objects", func(c *cluster, args []string) ([]string, error) {
			var errs []error
			for _, object := range args {
				client, name, err := c.split(object)
				if err == nil {
					err = client.Delete(c.t.Context(), name, metav1.DeleteOptions{})
				}
				errs = append(errs, err)
				synctest.Wait()
			}
			return nil, errors.Join(errs...)
		}},
		{"egress-services", "install | remove", "add or remove OVN-Kubernetes' kind EgressService",
			changeKinds(apiserver.EgressServices)},
		{"egress-ips", "install | remove", "add or remove OVN-Kubernetes' kind EgressIP", changeKinds(apiserver.EgressIPs)},
		{"patch", "OBJECT JSON", "merge JSON into an object", func(c *cluster, args []string) ([]string, error) {
			return nil, c.patch(args[0], strings.Join(args[1:], " "))
		}},
		{"patch-status", "OBJECT JSON", "merge JSON into the status of an object",
			func(c *cluster, args []string) ([]string, error) {
				return nil, c.patch(args[0], `{"status":`+strings.Join(args[1:], " ")+"}", "status")
			}},
		{"annotate", "OBJECT KEY=VALUE | KEY-...", "set or remove annotations",
			func(c *cluster, args []string) ([]string, error) {
				return nil, c.setMetadata("annotations", args)
			}},
		{"label", "OBJECT KEY=VALUE | KEY-...", "set or remove labels", func(c *cluster, args []string) ([]string, error) {
			return nil, c.setMetadata("labels", args)
		}},
	}
}

// changeKinds adds kinds to the API server, or removes them.
func changeKinds(kinds func() apiserver.Kinds) func(*cluster, []string) ([]string, error) {
	return func(c *cluster, args []string) ([]string, error) {
		if args[0] == "install" {
			c.server.AddKinds(kinds())
		} else {
			c.server.RemoveKinds(kinds())
		}
		return nil, nil
	}
}

// shortCommands create objects with one line.
func shortCommands() []command {
	return []command{
		{"pool", "NAME ADDRESSES [{SPEC}]", "create an IPAddressPool; addresses are separated by commas",
			func(c *cluster, args []string) ([]string, error) {
				return nil, c.applyManifest(fmt.Sprintf("{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: IPAddressPool, "+
					"metadata: {name: %s}, spec: {addresses: [\"%s\"]%s}}", args[0], strings.ReplaceAll(args[1], ",", `", "`),
					fields(args[2:])))
			}},
		{"lb", "NAMESPACE/NAME [ANNOTATION=VALUE | label:KEY=VALUE...] [{SPEC}]",
			"create a Service of type LoadBalancer; port 80 is the default",
			func(c *cluster, args []string) ([]string, error) { return nil, c.addService(args) }},
		{"lbs", "FIRST LAST", "create the Services shop/web-FIRST to LAST, each with a backend on node n1",
			func(c *cluster, args []string) ([]string, error) {
				first, err := strconv.Atoi(args[0])
				last, err2 := strconv.Atoi(args[1])
				for i := first; i <= last && err == nil; i++ {
					name := fmt.Sprintf("shop/web-%d", i)
					if err = c.addService([]string{name, "{allocateLoadBalancerNodePorts: false}"}); err == nil {
						err = c.setEndpoints(name, []string{fmt.Sprintf("10.244.1.%d@n1", i%250)})
					}
				}
				return nil, errors.Join(err, err2)
			}},
		{"endpoints", "NAMESPACE/NAME ADDRESS@NODE[:draining]...", "replace the endpoints of a Service, on port 8080",
			func(c *cluster, args []string) ([]string, error) { return nil, c.setEndpoints(args[0], args[1:]) }},
	}
}

// fields returns the fields of a flow mapping to append to another one.
func fields(words []string) string {
	text := strings.TrimSuffix(strings.TrimPrefix(strings.Join(words, " "), "{"), "}")
	if text == "" {
		return ""
	}
	return ", " + text
}

func (c *cluster) addService(args []string) error {
	namespace, name, _ := strings.Cut(args[0], "/")
	args = args[1:]
	var annotations, labels []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "{") {
		key, value, _ := strings.Cut(args[0], "=")
		args = args[1:]
		if label, is := strings.CutPrefix(key, "label:"); is {
			labels = append(labels, fmt.Sprintf("%s: %q", label, value))
			continue
		}
		if !strings.Contains(key, "/") {
			key = "slb.k8s.ovn.org/" + key
		}
		annotations = append(annotations, fmt.Sprintf("%s: %q", key, value))
	}
	spec := fields(args)
	if !strings.Contains(spec, "ports:") {
		spec += ", ports: [{name: http, port: 80, targetPort: 8080}]"
	}
	return c.applyManifest(fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: %s, annotations: "+
		"{%s}, labels: {%s}}, spec: {type: LoadBalancer%s}}", namespace, name, strings.Join(annotations, ", "),
		strings.Join(labels, ", "), spec))
}

// setEndpoints replaces the EndpointSlices of a Service, one per family.
func (c *cluster) setEndpoints(service string, endpoints []string) error {
	namespace, name, _ := strings.Cut(service, "/")
	lists := map[bool][]string{}
	for _, text := range endpoints {
		address, at, _ := strings.Cut(text, "@")
		node, state, _ := strings.Cut(at, ":")
		a, err := netip.ParseAddr(address)
		if err != nil {
			return err
		}
		conditions := "ready: true, serving: true, terminating: false"
		if state == "draining" {
			conditions = "ready: false, serving: true, terminating: true"
		}
		lists[a.Is4()] = append(lists[a.Is4()], fmt.Sprintf("{addresses: [%q], nodeName: %s, conditions: {%s}}", a, node,
			conditions))
	}
	for four, family := range map[bool]string{true: "IPv4", false: "IPv6"} {
		slice := name + "-" + strings.ToLower(family)
		_, err := c.get("endpointslice/" + namespace + "/" + slice)
		if err != nil && lists[four] == nil {
			continue
		}
		err = c.applyManifest(fmt.Sprintf("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: %s, "+
			"name: %s, labels: {kubernetes.io/service-name: %s}}, addressType: %s, ports: [{name: http, port: 8080}], "+
			"endpoints: [%s]}", namespace, slice, name, family, strings.Join(lists[four], ", ")))
		if err != nil {
			return err
		}
	}
	return nil
}
