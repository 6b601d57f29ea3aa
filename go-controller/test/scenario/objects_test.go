// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
)

// file returns a file of the archive, or one that scenarios share.
func (c *cluster) file(name string) (string, error) {
	for _, f := range c.archive.Files {
		if f.Name == name {
			return string(f.Data), nil
		}
	}
	data, err := os.ReadFile(filepath.Join("testdata", "shared", name))
	return string(data), err
}

// applyManifest creates the objects of a manifest, or merges them into those that exist, one after the other.
func (c *cluster) applyManifest(manifest string) error {
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		if len(bytes.TrimSpace([]byte(doc))) == 0 {
			continue
		}
		data, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		var obj unstructured.Unstructured
		if err := obj.UnmarshalJSON(data); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		client, err := c.clientFor(obj.GetNamespace(), func(k *apiserver.Kind) bool {
			return k.GroupVersionKind == obj.GroupVersionKind()
		})
		if err != nil {
			return err
		}
		options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		_, err = client.Create(c.t.Context(), &obj, options)
		if apierrors.IsAlreadyExists(err) {
			_, err = client.Patch(c.t.Context(), obj.GetName(), types.MergePatchType, data,
				metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
		}
		if err != nil {
			return err
		}
		synctest.Wait()
	}
	return nil
}

// client returns the client for a kind: its name in lower case, or RESOURCE.GROUP if the name is ambiguous.
func (c *cluster) client(kind, namespace string) (dynamic.ResourceInterface, error) {
	return c.clientFor(namespace, func(k *apiserver.Kind) bool {
		return strings.ToLower(k.Kind) == kind || k.Resource+"."+k.Group == kind
	})
}

func (c *cluster) clientFor(namespace string, is func(*apiserver.Kind) bool) (dynamic.ResourceInterface, error) {
	known := slices.Concat(c.kinds, apiserver.OpenShiftKinds(), apiserver.FRRKinds(), apiserver.RouteAdvertisements(),
		apiserver.EgressServices(), apiserver.EgressIPs(), c.contract)
	i := slices.IndexFunc(known, is)
	if i < 0 {
		return nil, errors.New("no such kind")
	}
	k := known[i]
	resources := c.user.Resource(k.GroupVersion().WithResource(k.Resource))
	if k.Namespaced {
		return resources.Namespace(namespace), nil
	}
	return resources, nil
}

// split splits KIND/NAME or KIND/NAMESPACE/NAME.
func (c *cluster) split(object string) (dynamic.ResourceInterface, string, error) {
	parts := strings.Split(object, "/")
	namespace := ""
	switch len(parts) {
	case 2:
	case 3:
		namespace = parts[1]
	default:
		return nil, "", fmt.Errorf("%q is neither KIND/NAME nor KIND/NAMESPACE/NAME", object)
	}
	client, err := c.client(parts[0], namespace)
	return client, parts[len(parts)-1], err
}

func (c *cluster) get(object string) (*unstructured.Unstructured, error) {
	client, name, err := c.split(object)
	if err != nil {
		return nil, err
	}
	return client.Get(c.t.Context(), name, metav1.GetOptions{})
}

// patch merges a JSON patch into an object, or into its status.
func (c *cluster) patch(object, patch string, subresource ...string) error {
	client, name, err := c.split(object)
	if err != nil {
		return err
	}
	_, err = client.Patch(c.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
	return err
}

// setMetadata sets annotations or labels: KEY=VALUE, or KEY- to remove it.
func (c *cluster) setMetadata(field string, args []string) error {
	values := map[string]*string{}
	for _, arg := range args[1:] {
		if key, value, set := strings.Cut(arg, "="); set {
			values[key] = &value
		} else {
			values[strings.TrimSuffix(arg, "-")] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: values}})
	if err != nil {
		return err
	}
	return c.patch(args[0], string(patch))
}

// conditions returns the conditions of an object, one per line.
func conditions(obj *unstructured.Unstructured) []string {
	var out []string
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range list {
		condition, _ := item.(map[string]any)
		text := fmt.Sprint(strings.TrimPrefix(fmt.Sprint(condition["type"]), "slb.k8s.ovn.org/"), " ", condition["status"],
			" ", condition["reason"])
		if message := fmt.Sprint(condition["message"]); message != "" {
			text += ": " + message
		}
		out = append(out, text)
	}
	return out
}

// status returns the status of an object: its conditions, and everything else as YAML.
func status(obj *unstructured.Unstructured) []string {
	out := conditions(obj)
	all, _, _ := unstructured.NestedMap(obj.Object, "status")
	delete(all, "conditions")
	if len(all) == 0 {
		return out
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return append(out, "error: "+err.Error())
	}
	return append(out, string(text))
}

// addresses returns the addresses in the status of a Service.
func addresses(obj *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "loadBalancer", "ingress")
	var out []string
	for _, item := range list {
		ingress, _ := item.(map[string]any)
		for _, field := range []string{"ip", "hostname"} {
			if text, has := ingress[field].(string); has {
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, " ")
}
