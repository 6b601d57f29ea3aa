// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
)

// objects reads and writes objects of any kind. It asks the API server for its kinds once, and again for a kind that is
// not among them. A kubectl asks each time, and what it reads then takes most of its time.
type objects struct {
	client dynamic.Interface
	kinds  *restmapper.DeferredDiscoveryRESTMapper
}

func newObjects(config *rest.Config) (*objects, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &objects{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))}, nil
}

// known calls find, and once more after discovery if it knows no such kind.
func (o *objects) known(find func() error) error {
	err := find()
	if meta.IsNoMatchError(err) {
		o.kinds.Reset()
		err = find()
	}
	return err
}

// of returns the client of a kind, in a namespace if the kind has any.
func (o *objects) of(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	var mapping *meta.RESTMapping
	err := o.known(func() (err error) {
		mapping, err = o.kinds.RESTMapping(kind.GroupKind(), kind.Version)
		return err
	})
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return o.client.Resource(mapping.Resource), nil
	}
	return o.client.Resource(mapping.Resource).Namespace(namespace), nil
}

// serves returns an error until the API server serves all its CustomResourceDefinitions and lists their kinds.
func (o *objects) serves(ctx context.Context) error {
	definitions := o.client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	list, err := definitions.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	o.kinds.Reset()
	for _, definition := range list.Items {
		resource, err := o.kinds.ResourceFor(schema.ParseGroupResource(definition.GetName()).WithVersion(""))
		if err != nil {
			return err
		}
		if _, err := o.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("list %s: %w", definition.GetName(), err)
		}
	}
	return nil
}

// ServesKinds returns an error until the API server serves all its CustomResourceDefinitions and lists their kinds. It
// is for a wait: it does so some time after a definition is created, and even after it is Established.
func (c *ControlPlane) ServesKinds(ctx context.Context) error { return c.objects.serves(ctx) }

// ServesKinds is the method of the same name, for an API server that only this configuration reaches.
func ServesKinds(ctx context.Context, config *rest.Config) error {
	o, err := newObjects(config)
	if err != nil {
		return err
	}
	return o.serves(ctx)
}

// Apply creates or updates the objects in the manifests, YAML or JSON, by server-side apply, in the namespace default
// unless they name another. Unknown fields are errors. It tries each object and returns all errors.
func (c *ControlPlane) Apply(ctx context.Context, manifests string) error {
	return c.objects.apply(ctx, manifests, metav1.PatchOptions{})
}

// DryRun does the same as Apply, but the API server stores nothing.
func (c *ControlPlane) DryRun(ctx context.Context, manifests string) error {
	return c.objects.apply(ctx, manifests, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
}

func (o *objects) apply(ctx context.Context, manifests string, options metav1.PatchOptions) error {
	force := true
	options.Force, options.FieldManager, options.FieldValidation = &force, "lab", metav1.FieldValidationStrict
	var errs []error
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096); ; {
		var document runtime.RawExtension
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return errors.Join(errs...)
		} else if err != nil {
			return errors.Join(append(errs, fmt.Errorf("apply: %w", err))...)
		}
		if text := bytes.TrimSpace(document.Raw); len(text) > 0 && !bytes.Equal(text, []byte("null")) {
			errs = append(errs, o.applyOne(ctx, text, options))
		}
	}
}

func (o *objects) applyOne(ctx context.Context, text []byte, options metav1.PatchOptions) error {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	client, err := o.of(object.GroupVersionKind(), cmp.Or(object.GetNamespace(), metav1.NamespaceDefault))
	if err == nil {
		_, err = client.Patch(ctx, object.GetName(), types.ApplyPatchType, text, options)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// Get returns what kubectl get RESOURCE NAME -o jsonpath=PATH prints. resource is the plural of a kind, or
// PLURAL.GROUP. Without a name, path is that of a list, and without a namespace that of all of them.
func (c *ControlPlane) Get(ctx context.Context, resource, namespace, name, path string) (string, error) {
	content, err := c.objects.get(ctx, resource, namespace, name)
	if err != nil {
		return "", fmt.Errorf("get %s %s: %w", resource, name, err)
	}
	var out strings.Builder
	template := jsonpath.New(resource).AllowMissingKeys(true)
	if err := errors.Join(template.Parse(path), template.Execute(&out, content)); err != nil {
		return "", fmt.Errorf("get %s %s: %s: %w", resource, name, path, err)
	}
	return out.String(), nil
}

func (o *objects) get(ctx context.Context, resource, namespace, name string) (map[string]any, error) {
	var kind schema.GroupVersionKind
	err := o.known(func() (err error) {
		kind, err = o.kinds.KindFor(schema.ParseGroupResource(resource).WithVersion(""))
		return err
	})
	if err != nil {
		return nil, err
	}
	client, err := o.of(kind, namespace)
	if err != nil {
		return nil, err
	}
	if name == "" {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.UnstructuredContent(), nil
	}
	object, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.Object, nil
}
