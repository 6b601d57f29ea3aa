// SPDX-License-Identifier: Apache-2.0

// Command bundle writes a bundle for the Operator Lifecycle Manager (format registry+v1) for OpenShift from what
// kustomize builds of dist/manifests/overlays/openshift. The Deployment and the RBAC rules of the controller become a
// ClusterServiceVersion. CRDs and plain RBAC objects are copied. Objects that the format does not support (namespaces,
// DaemonSets, SecurityContextConstraints, objects in other namespaces, admission policies) are written to beside.yaml,
// which must be applied first. Clusters with OpenShift SDN need other CRDs, and a bundle has only one version of each.
//
//	go run ./contrib/bundle VERSION OPENSHIFT.YAML MANIFESTS EXAMPLES BUNDLE
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	name      = "ovnkube-slb"
	namespace = "ovnkube-slb"
	image     = "ghcr.io/ovnkube-slb/ovnkube-slb"
	license   = "# SPDX-License-Identifier: Apache-2.0\n# Generated from dist/manifests by `make generate`.\n"
)

// object is a manifest.
type object map[string]any

func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func (o object) text(path ...string) string {
	text, _ := o.at(path...).(string)
	return text
}

func (o object) kind() string { return o.text("kind") }

func (o object) named(name string) bool { return o.text("metadata", "name") == name }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("usage: bundle VERSION OPENSHIFT.YAML MANIFESTS EXAMPLES BUNDLE")
	}
	version, manifests, examples, out := args[0], args[2], args[3], args[4]
	crds, err := read(filepath.Join(manifests, "crds"), "slb.*.yaml")
	if err != nil {
		return err
	}
	samples, err := read(examples, "*.yaml")
	if err != nil {
		return err
	}
	all, err := parseFile(args[1])
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	for _, dir := range []string{"manifests", "metadata"} {
		if err := os.MkdirAll(filepath.Join(out, dir), 0o755); err != nil { //nolint:gosec // sources, for everybody to read
			return err
		}
	}
	s := sort(all)
	csv, err := s.serviceVersion(version, crds, samples)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		file := strings.Join([]string{crd.text("spec", "group"), crd.text("spec", "names", "plural")}, "_") + ".yaml"
		text, err := os.ReadFile(filepath.Join(manifests, "crds", file))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(out, "manifests", file), text); err != nil {
			return err
		}
	}
	for file, list := range map[string][]object{
		"manifests/" + name + ".clusterserviceversion.yaml": {csv},
		"metadata/annotations.yaml":                         {annotations()},
		"beside.yaml":                                       s.beside,
	} {
		if err := writeObjects(filepath.Join(out, file), list); err != nil {
			return err
		}
	}
	for _, o := range s.plain {
		file := fmt.Sprintf("%s_%s.yaml", o.text("metadata", "name"), strings.ToLower(o.kind()))
		if err := writeObjects(filepath.Join(out, "manifests", file), []object{o}); err != nil {
			return err
		}
	}
	return nil
}

// parts groups the objects of the manifests by destination.
type parts struct {
	deployment object
	// permissions apply in the controller's own namespace, cluster in all namespaces.
	permissions, cluster any
	plain, beside        []object
}

// sort groups the objects by destination. It omits the ServiceAccount and the bindings of a
// ClusterServiceVersion, which are created from the ClusterServiceVersion.
func sort(all []object) parts {
	var p parts
	for _, o := range all {
		ns := o.text("metadata", "namespace")
		switch kind := o.kind(); {
		case kind == "CustomResourceDefinition":
		case kind == "Deployment":
			p.deployment = o
		case kind == "ServiceAccount" && o.named(name), kind == "ClusterRoleBinding" && o.named("ovnkube-slb-controller"),
			kind == "RoleBinding" && ns == namespace && o.named("ovnkube-slb-leader"):
		case kind == "ClusterRole" && o.named("ovnkube-slb-controller"):
			p.cluster = o["rules"]
		case kind == "Role" && ns == namespace && o.named("ovnkube-slb-leader"):
			p.permissions = o["rules"]
		case kind == "ClusterRole":
			p.plain = append(p.plain, o)
		default:
			p.beside = append(p.beside, o)
		}
	}
	// Namespaces precede the objects they contain.
	slices.SortStableFunc(p.beside, func(a, b object) int {
		return rank(a) - rank(b)
	})
	return p
}

func rank(o object) int {
	if o.kind() == "Namespace" {
		return 0
	}
	return 1
}

func (p *parts) serviceVersion(version string, crds, samples []object) (object, error) {
	pinned := image + ":v" + version
	spec, err := p.pinnedDeployment(pinned)
	if err != nil {
		return nil, err
	}
	var owned, examples []any
	for _, crd := range crds {
		kind := crd.text("spec", "names", "kind")
		versions, _ := crd.at("spec", "versions").([]any)
		for _, v := range versions {
			served, _ := v.(map[string]any)
			schema, _ := object(served).at("schema", "openAPIV3Schema", "description").(string)
			owned = append(owned, object{"name": crd.text("metadata", "name"), "kind": kind, "displayName": kind,
				"version": object(served).text("name"), "description": schema})
		}
	}
	for _, sample := range samples {
		if strings.HasPrefix(sample.text("apiVersion"), "slb.") {
			examples = append(examples, sample)
		}
	}
	almExamples, err := json.Marshal(examples)
	if err != nil {
		return nil, err
	}
	return object{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "ClusterServiceVersion",
		"metadata": object{
			"name":      name + ".v" + version,
			"namespace": namespace,
			"annotations": object{
				"alm-examples":   string(almExamples),
				"capabilities":   "Basic Install",
				"categories":     "Networking",
				"containerImage": pinned,
				"operatorframework.io/suggested-namespace": namespace,
				"support": name,
			},
		},
		"spec": object{
			"displayName":    "Service load balancers for OVN-Kubernetes",
			"description":    description,
			"version":        version,
			"maturity":       "alpha",
			"minKubeVersion": "1.31.0",
			"provider":       object{"name": name},
			"keywords":       []string{"load balancer", "OVN", "BGP", "bare metal"},
			"links":          []object{{"name": "Source", "url": "https://github.com/ovnkube-slb/ovnkube-slb"}},
			// With other install modes, permissions in its own namespace would become permissions in all namespaces.
			"installModes": []object{
				{"type": "OwnNamespace", "supported": true}, {"type": "SingleNamespace", "supported": false},
				{"type": "MultiNamespace", "supported": false}, {"type": "AllNamespaces", "supported": false},
			},
			"customresourcedefinitions": object{"owned": owned},
			"relatedImages":             []object{{"name": name, "image": pinned}},
			"install": object{
				"strategy": "deployment",
				"spec": object{
					"clusterPermissions": []object{{"serviceAccountName": name, "rules": p.cluster}},
					"permissions":        []object{{"serviceAccountName": name, "rules": p.permissions}},
					"deployments":        []object{{"name": name, "label": p.deployment.at("metadata", "labels"), "spec": spec}},
				},
			},
		},
	}, nil
}

const description = "Gives Services of type LoadBalancer addresses from pools and has OVN itself answer for them, on " +
	"clusters without a cloud. " +
	"Before it is installed, into namespace ovnkube-slb, apply what bundles can't have, the agents on the nodes among " +
	"it: `dist/bundle/beside.yaml`. It is for OVN-Kubernetes: with OpenShift SDN, apply the manifests of the release. " +
	"Annotation `slb.k8s.ovn.org/mode` of Network `cluster` (operator.openshift.io) switches it: Disabled, Layer2, BGP " +
	"or Layer2+BGP."

// pinnedDeployment returns the spec of the Deployment, whose containers must all have the image.
func (p *parts) pinnedDeployment(image string) (any, error) {
	containers, _ := p.deployment.at("spec", "template", "spec", "containers").([]any)
	for _, c := range containers {
		if container, _ := c.(map[string]any); container["image"] != image {
			return nil, fmt.Errorf("container %v has image %v, and version is %s", container["name"], container["image"], image)
		}
	}
	return p.deployment["spec"], nil
}

func annotations() object {
	const prefix = "operators.operatorframework.io.bundle."
	return object{"annotations": object{
		prefix + "mediatype.v1":       "registry+v1",
		prefix + "manifests.v1":       "manifests/",
		prefix + "metadata.v1":        "metadata/",
		prefix + "package.v1":         name,
		prefix + "channels.v1":        "alpha",
		prefix + "channel.default.v1": "alpha",
	}}
}

// read returns the objects in the files of dir that match pattern, in order.
func read(dir, pattern string) ([]object, error) {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no %s in %s (%w)", pattern, dir, err)
	}
	var all []object
	for _, file := range files {
		list, err := parseFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// parseFile returns the objects in a file.
func parseFile(file string) ([]object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []object
	for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	return all, nil
}

func writeObjects(file string, list []object) error {
	texts := make([]string, 0, len(list))
	for _, o := range list {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		texts = append(texts, string(text))
	}
	return write(file, []byte(license+strings.Join(texts, "---\n")))
}

func write(file string, text []byte) error {
	return os.WriteFile(file, text, 0o644) //nolint:gosec // a source, for everybody to read
}
