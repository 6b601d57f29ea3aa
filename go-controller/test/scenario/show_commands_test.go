// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/jsonpath"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
)

func showCommands() []command {
	return []command{
		{"service", "NAMESPACE/NAME", "the addresses and conditions of a Service",
			func(c *cluster, args []string) ([]string, error) {
				obj, err := c.get("service/" + args[0])
				if err != nil {
					return nil, err
				}
				return append([]string{cmp.Or(addresses(obj), "no address")}, conditions(obj)...), nil
			}},
		{"allocated", "", "the addresses of all Services and their condition Allocated",
			func(c *cluster, _ []string) ([]string, error) {
				return c.allocations()
			}},
		{"status", "OBJECT", "the status of an object", func(c *cluster, args []string) ([]string, error) {
			obj, err := c.get(args[0])
			if err != nil {
				return nil, err
			}
			return status(obj), nil
		}},
		{"conditions", "OBJECT", "the conditions of an object", func(c *cluster, args []string) ([]string, error) {
			obj, err := c.get(args[0])
			if err != nil {
				return nil, err
			}
			return conditions(obj), nil
		}},
		{"get", "OBJECT JSONPATH", "fields of an object", func(c *cluster, args []string) ([]string, error) {
			obj, err := c.get(args[0])
			if err != nil {
				return nil, err
			}
			path := jsonpath.New("get").AllowMissingKeys(true)
			if err := path.Parse(strings.Join(args[1:], " ")); err != nil {
				return nil, err
			}
			var out strings.Builder
			err = path.Execute(&out, obj.Object)
			return []string{out.String()}, err
		}},
		{"metric", "PROCESS NAME", "the series of a metric", func(c *cluster, args []string) ([]string, error) {
			return c.series(strings.Join(args[:len(args)-1], " "), args[len(args)-1])
		}},
		{"passes", "CONTROLLER", "how many full passes over all Services a controller has made since the last time",
			func(c *cluster, args []string) ([]string, error) { return c.passes(strings.Join(args, " ")) }},
		{"network-type", "", "the type of the cluster network that OpenShift reports",
			func(c *cluster, _ []string) ([]string, error) {
				config := c.server.User().Config()
				client, err := kubernetes.NewForConfig(config)
				if err != nil {
					return nil, err
				}
				is, err := slb.OpenShiftNetworkType(c.t.Context(), client, config)
				return []string{cmp.Or(is, "none")}, err
			}},
		{"events", "", "the Events since the last time, sorted",
			func(c *cluster, _ []string) ([]string, error) { return c.newEvents() }},
		{"writes", "[leases | rows]", "what was written since the last time, without Events and Leases",
			func(c *cluster, args []string) ([]string, error) { return c.writes(args), nil }},
		{"forget-writes", "", "forget what was written so far, and the passes so far",
			func(c *cluster, _ []string) ([]string, error) {
				c.writes(nil)
				for _, p := range c.processes {
					if p.metrics == nil {
						continue
					}
					if _, err := c.passes(p.name); err != nil {
						return nil, err
					}
				}
				return nil, nil
			}},
		{"rows", "[NODE] -- WORD...", "the rows in OVN that contain all words",
			func(c *cluster, args []string) ([]string, error) {
				node, words := zoneAndWords(args)
				return c.fabric.Zone(node).Rows(words...), nil
			}},
		{"shards", "", "the gateways of each shard, and the chassis that has claimed it, by database",
			func(c *cluster, _ []string) ([]string, error) {
				var out []string
				for _, zone := range c.fabric.Zones() {
					for _, line := range c.fabric.Zone(zone).Shards() {
						out = append(out, strings.TrimPrefix(zone+": "+line, ": "))
					}
				}
				return out, nil
			}},
	}
}

// listAll returns the objects of a kind in all namespaces.
func (c *cluster) listAll(kind string) (*unstructured.UnstructuredList, error) {
	client, err := c.client(kind, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	return client.List(c.t.Context(), metav1.ListOptions{})
}

// newEvents returns the Events that were written since the last call.
func (c *cluster) newEvents() ([]string, error) {
	list, err := c.listAll("event")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list.Items {
		key := e.GetNamespace() + "/" + e.GetName()
		if c.shown[key] == e.GetResourceVersion() {
			continue
		}
		c.shown[key] = e.GetResourceVersion()
		about, _ := e.Object["involvedObject"].(map[string]any)
		out = append(out, fmt.Sprintf("%s %s %s/%s: %s", e.Object["type"], e.Object["reason"],
			strings.ToLower(fmt.Sprint(about["kind"])), about["name"], e.Object["message"]))
	}
	slices.Sort(out)
	return out, nil
}

// manyObjects is the number of objects of a kind from which on writes lists them as one.
const manyObjects = 8

// writes returns what was written since the last call, to the API server and to OVN, sorted. Only writes of Services
// and their plans are counted: those of other objects report what is known by then, once per second at most.
func (c *cluster) writes(args []string) []string {
	leases, rows := slices.Contains(args, "leases"), slices.Contains(args, "rows")
	counts, objects := map[string]int{}, map[string]map[string]bool{}
	for _, w := range c.server.TakeWrites() {
		if w.Resource == "events" || (w.Resource == "leases") != leases {
			continue
		}
		text := w.String()
		if w.Err == nil && !w.Changed {
			text += " (no change)"
		}
		counts[text]++
		of := w
		of.Object, of.Err = "", nil
		if objects[of.String()] == nil {
			objects[of.String()] = map[string]bool{}
		}
		objects[of.String()][w.Object] = true
	}
	for kind, list := range objects {
		if len(list) < manyObjects {
			continue
		}
		maps.DeleteFunc(counts, func(text string, _ int) bool { return strings.HasPrefix(text, kind) })
		counts[fmt.Sprintf("%s%d objects", kind, len(list))] = 1
	}
	for _, zone := range c.fabric.Zones() {
		client, verbs := strings.TrimSuffix("ovn "+zone, " "), map[string]int{}
		for _, line := range c.fabric.Zone(zone).TakeWrites() {
			verb, _, _ := strings.Cut(line, " ")
			verbs[verb]++
			if rows {
				counts[client+": "+line]++
			}
		}
		var parts []string
		for _, verb := range slices.Sorted(maps.Keys(verbs)) {
			parts = append(parts, fmt.Sprintf("%s %d rows", verb, verbs[verb]))
		}
		if len(parts) > 0 && !rows && !leases {
			counts[client+": "+strings.Join(parts, ", ")] = 1
		}
	}
	var out []string
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[text]; n > 1 && strings.Contains(text, " service") {
			text += fmt.Sprintf(" (%d times)", n)
		}
		out = append(out, text)
	}
	return out
}

// allocations returns the addresses of each Service and its condition Allocated.
func (c *cluster) allocations() ([]string, error) {
	list, err := c.listAll("service")
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range list.Items {
		s := &list.Items[i]
		words := []string{s.GetNamespace() + "/" + s.GetName()}
		if list := addresses(s); list != "" {
			words = append(words, list)
		}
		for _, condition := range conditions(s) {
			if text, is := strings.CutPrefix(condition, "Allocated "); is {
				words = append(words, text)
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out, nil
}

// passes returns how many full passes a controller has made since the last call.
func (c *cluster) passes(process string) ([]string, error) {
	p, err := c.process(process)
	if err != nil {
		return nil, err
	}
	families, err := p.metrics.Gather()
	if err != nil {
		return nil, err
	}
	for _, family := range families {
		if family.GetName() == "ovnkube_slb_pass_duration_seconds" {
			before := p.passes
			p.passes = family.GetMetric()[0].GetHistogram().GetSampleCount()
			return []string{fmt.Sprint(p.passes - before)}, nil
		}
	}
	return nil, fmt.Errorf("%s has no metric of its passes", process)
}

// series returns the series of a metric of a process.
func (c *cluster) series(process, name string) ([]string, error) {
	p, err := c.process(process)
	if err != nil {
		return nil, err
	}
	families, err := p.metrics.Gather()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out = append(out, fmt.Sprintf("%s %v", strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	return out, nil
}
