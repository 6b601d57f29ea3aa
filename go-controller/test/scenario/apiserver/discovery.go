// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discover returns the resources of the group and version that a path names, or nil. s.mu must be held.
func (s *Server) discover(path string) *metav1.APIResourceList {
	path = strings.Trim(path, "/")
	version, core := strings.CutPrefix(path, "api/")
	if !core {
		var found bool
		if version, found = strings.CutPrefix(path, "apis/"); !found {
			return nil
		}
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil
	}
	list := &metav1.APIResourceList{GroupVersion: gv.String(),
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, k := range s.kinds {
		if k.GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.Resource, Kind: k.Kind,
			Namespaced: k.Namespaced, Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}})
		if k.HasStatus {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.Resource + "/status", Kind: k.Kind,
				Namespaced: k.Namespaced, Verbs: metav1.Verbs{"get", "patch", "update"}})
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}
