// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// maxNamespaces is the number of namespaces that an error names.
const maxNamespaces = 5

// notFound returns the error of a command about a Service that does not exist in its namespace, most often because the
// namespace is that of the context. It names the namespaces in which a Service of that name exists, as far as the user
// may list Services.
func (c *clients) notFound(ctx context.Context, key world.Key) error {
	list, err := c.core.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()})
	if err != nil { // The user need not be allowed to list them: the names of namespaces are all that is lost.
		return fmt.Errorf("service %s: not found; if it is in another namespace, use NAMESPACE/%s, or -n NAMESPACE", key,
			key.Name)
	}
	var namespaces []string
	for i := range list.Items {
		if list.Items[i].Name == key.Name {
			namespaces = append(namespaces, list.Items[i].Namespace)
		}
	}
	return notFoundIn(key, namespaces)
}

// notFoundIn is notFound for a user who may list Services: those of this name are in namespaces.
func notFoundIn(key world.Key, namespaces []string) error {
	slices.Sort(namespaces)
	switch len(namespaces) {
	case 0:
		return fmt.Errorf("service %s: not found, and no namespace has a Service of this name", key)
	case 1:
		return fmt.Errorf("service %s: not found; namespace %s has one: use %[2]s/%s, or -n %[2]s", key, namespaces[0],
			key.Name)
	}
	return fmt.Errorf("service %s: not found; namespaces with a Service of this name: %s: use NAMESPACE/%s, or -n "+
		"NAMESPACE", key, world.Some(namespaces, maxNamespaces), key.Name)
}
