// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// request is a parsed request for objects.
type request struct {
	client string
	kind   *Kind
	// namespace and name are empty for all.
	namespace, name string
	// subresource is "" or "status".
	subresource string
	options     metav1.ListOptions
	labels      labels.Selector
	fields      fields.Selector
	strict      bool
}

// parse parses the path and the query of a request for objects. s.mu must be held.
func (s *Server) parse(r *http.Request) (*request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group, version string
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, errNoPath
	}
	out := &request{}
	if parts[0] == "namespaces" && len(parts) > 2 && s.kinds.byResource(group, version, parts[2]) != nil {
		out.namespace, parts = parts[1], parts[2:]
	}
	out.kind = s.kinds.byResource(group, version, parts[0])
	if out.kind == nil {
		return nil, errNoPath
	}
	if len(parts) > 1 {
		out.name = parts[1]
	}
	if len(parts) > 2 {
		if out.subresource = parts[2]; out.subresource != "status" || !out.kind.HasStatus {
			return nil, errNoPath
		}
	}
	return out, out.parseQuery(r)
}

// errNoPath is what an API server returns for a path that it does not serve.
var errNoPath = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
	Message: "the server could not find the requested resource",
}}

func (rq *request) parseQuery(r *http.Request) error {
	query := r.URL.Query()
	rq.strict = query.Get("fieldValidation") == metav1.FieldValidationStrict
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &rq.options, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var err error
	if rq.labels, err = labels.Parse(rq.options.LabelSelector); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if rq.fields, err = fields.ParseSelector(rq.options.FieldSelector); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// selects reports whether an object is among those that the request is for; nil is not.
func (rq *request) selects(obj map[string]any) bool {
	if obj == nil {
		return false
	}
	o := object(obj)
	return (rq.namespace == "" || o.GetNamespace() == rq.namespace) && (rq.name == "" || o.GetName() == rq.name) &&
		rq.labels.Matches(labels.Set(o.GetLabels())) && rq.fields.Matches(fieldsOf(obj))
}

// fieldsOf are the fields of an object by their paths, such as "metadata.name".
type fieldsOf map[string]any

func (f fieldsOf) Has(path string) bool {
	_, has := f.value(path)
	return has
}

func (f fieldsOf) Get(path string) string {
	value, _ := f.value(path)
	return value
}

func (f fieldsOf) value(path string) (string, bool) {
	var at any = map[string]any(f)
	for part := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return "", false
		}
		at = m[part]
	}
	text, ok := at.(string)
	return text, ok
}
