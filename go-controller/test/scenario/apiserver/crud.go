// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// list returns the list of the selected objects, by name. s.mu must be held.
func (s *Server) list(q *request) map[string]any {
	t := s.tables[q.kind.groupResource()]
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(t.objects)) {
		if q.selects(t.objects[key]) {
			items = append(items, t.objects[key])
		}
	}
	return map[string]any{
		"apiVersion": q.kind.GroupVersion().String(), "kind": q.kind.Kind + "List",
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(s.revision)}, "items": items,
	}
}

// get returns one object. s.mu must be held.
func (s *Server) get(q *request) (map[string]any, error) {
	obj := s.tables[q.kind.groupResource()].objects[keyOf(q.namespace, q.name)]
	if obj == nil {
		return nil, apierrors.NewNotFound(q.kind.groupResource(), q.name)
	}
	return obj, nil
}

// create creates an object. s.mu must be held.
func (s *Server) create(q *request, obj map[string]any) (map[string]any, error) {
	t, o := s.tables[q.kind.groupResource()], object(obj)
	if q.kind.HasStatus {
		delete(obj, "status")
	}
	if err := q.kind.admission.decode(obj, q.strict); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(q.kind.GroupVersionKind)
	if q.kind.Namespaced {
		o.SetNamespace(q.namespace)
		if !s.namespaceExists(q.namespace) {
			return nil, apierrors.NewNotFound(s.tableOf("namespaces").kind.groupResource(), q.namespace)
		}
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		t.created[o.GetGenerateName()]++
		o.SetName(fmt.Sprintf("%s%05d", o.GetGenerateName(), t.created[o.GetGenerateName()]))
	}
	if o.GetName() == "" {
		return nil, apierrors.NewBadRequest("metadata.name: Required value: name or generateName is required")
	}
	q.name = o.GetName()
	key := keyOf(q.namespace, q.name)
	if t.objects[key] != nil && q.kind.Kind == "Event" {
		// client-go names Events by the time, which does not pass between two Events with a virtual clock.
		t.created[key]++
		q.name = fmt.Sprintf("%s.%d", q.name, t.created[key])
		o.SetName(q.name)
		key = keyOf(q.namespace, q.name)
	}
	o.SetManagedFields(nil)
	o.SetDeletionTimestamp(nil)
	o.SetResourceVersion("")
	if err := q.kind.admission.admit(s, nil, obj, false); err != nil {
		return nil, err
	}
	if t.objects[key] != nil {
		return nil, apierrors.NewAlreadyExists(q.kind.groupResource(), q.name)
	}
	t.created[key]++
	o.SetUID(uid(q.kind, key, t.created[key]))
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	if q.kind.countsGenerations {
		o.SetGeneration(1)
	}
	return s.put(t, key, obj), nil
}

// uid returns the UID of an object.
func uid(k *Kind, key string, times int) types.UID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", k.groupResource(), key, times))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// update replaces an object, or its status, by what change makes of a copy of it. s.mu must be held.
func (s *Server) update(
	q *request, change func(old map[string]any) (map[string]any, error),
) (result map[string]any, changed bool, err error) {
	old, err := s.get(q)
	if err != nil {
		return nil, false, err
	}
	obj, err := change(old)
	if err != nil {
		return nil, false, err
	}
	o, before := object(obj), object(old)
	if uid := o.GetUID(); uid != "" && uid != before.GetUID() {
		return nil, false, s.conflict(q, fmt.Errorf("%s: UID in precondition: %s, UID in object meta: %s",
			"Precondition failed", uid, before.GetUID()))
	}
	if version := o.GetResourceVersion(); version != "" && version != before.GetResourceVersion() {
		return nil, false, s.conflict(q, fmt.Errorf(
			"the object has been modified; please apply your changes to the latest version and try again"))
	}
	if err := q.kind.admission.decode(obj, q.strict); err != nil {
		return nil, false, err
	}
	obj = q.merged(old, obj)
	if err := q.kind.admission.admit(s, old, obj, q.subresource == "status"); err != nil {
		return nil, false, err
	}
	if equality.Semantic.DeepEqual(obj, old) {
		return old, false, nil
	}
	o = object(obj)
	if q.kind.countsGenerations && !sameExceptMetadata(old, obj) {
		o.SetGeneration(before.GetGeneration() + 1)
	}
	t, key := s.tables[q.kind.groupResource()], keyOf(q.namespace, q.name)
	s.put(t, key, obj)
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		s.put(t, key, nil)
	}
	return obj, true, nil
}

func (s *Server) conflict(q *request, why error) error {
	return apierrors.NewConflict(q.kind.groupResource(), q.name, why)
}

// merged returns the object that a request makes of an old and a new one: the new one with the metadata that clients
// can't change, and with the old status or nothing but the new one.
func (rq *request) merged(old, obj map[string]any) map[string]any {
	next := runtime.DeepCopyJSON(obj)
	switch {
	case rq.subresource == "status":
		next = runtime.DeepCopyJSON(old)
		delete(next, "status")
		if status, has := obj["status"]; has {
			next["status"] = runtime.DeepCopyJSONValue(status)
		}
	case rq.kind.HasStatus:
		delete(next, "status")
		if status, has := old["status"]; has {
			next["status"] = runtime.DeepCopyJSONValue(status)
		}
	}
	o, before := object(next), object(old)
	o.SetGroupVersionKind(rq.kind.GroupVersionKind)
	o.SetName(before.GetName())
	o.SetNamespace(before.GetNamespace())
	o.SetUID(before.GetUID())
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetDeletionTimestamp(before.GetDeletionTimestamp())
	o.SetGeneration(before.GetGeneration())
	o.SetResourceVersion(before.GetResourceVersion())
	o.SetManagedFields(nil)
	return next
}

// sameExceptMetadata reports whether two objects differ in their metadata and status only.
func sameExceptMetadata(a, b map[string]any) bool {
	strip := func(obj map[string]any) map[string]any {
		out := maps.Clone(obj)
		delete(out, "metadata")
		delete(out, "status")
		return out
	}
	return equality.Semantic.DeepEqual(strip(a), strip(b))
}

// remove deletes an object, or marks it as being deleted if it has finalizers. s.mu must be held.
func (s *Server) remove(q *request, options *metav1.DeleteOptions) (map[string]any, error) {
	obj, err := s.get(q)
	if err != nil {
		return nil, err
	}
	o := object(obj)
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != o.GetUID() {
			return nil, s.conflict(q, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
				"The object might have been deleted and then recreated", *p.UID, o.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion() {
			return nil, s.conflict(q, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the "+
				"ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion,
				o.GetResourceVersion()))
		}
	}
	t, key := s.tables[q.kind.groupResource()], keyOf(q.namespace, q.name)
	if len(o.GetFinalizers()) == 0 {
		s.put(t, key, nil)
		return obj, nil
	}
	if o.GetDeletionTimestamp() != nil {
		return obj, nil
	}
	next, now := runtime.DeepCopyJSON(obj), metav1.NewTime(time.Now())
	object(next).SetDeletionTimestamp(&now)
	return s.put(t, key, next), nil
}

// removeAll deletes the selected objects and returns their list. s.mu must be held.
func (s *Server) removeAll(q *request, options *metav1.DeleteOptions) (map[string]any, error) {
	list := s.list(q)
	items, _ := list["items"].([]any)
	for _, item := range items {
		obj, _ := item.(map[string]any)
		one := *q
		one.namespace, one.name = object(obj).GetNamespace(), object(obj).GetName()
		if _, err := s.remove(&one, options); err != nil {
			return nil, err
		}
	}
	return list, nil
}
