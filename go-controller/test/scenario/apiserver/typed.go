// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// typed is the admission of a built-in kind that is only decoded.
type typed struct{ empty func() runtime.Object }

// example returns an empty object of the Go type, whose tags strategic merge patches need.
func (t typed) example() any { return t.empty() }

// decode replaces an object by what its Go type keeps of it.
func (t typed) decode(obj map[string]any, strict bool) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode an object: %w", err)
	}
	into := t.empty()
	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if strict && len(unknown) > 0 {
		return strictError(unknown)
	}
	return replace(obj, into)
}

// replace makes obj the JSON form of a typed object.
func replace(obj map[string]any, by any) error {
	data, err := json.Marshal(by)
	if err != nil {
		return fmt.Errorf("encode an object: %w", err)
	}
	var next map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &next); err != nil {
		return fmt.Errorf("decode an object: %w", err)
	}
	clear(obj)
	for key, value := range next {
		obj[key] = value
	}
	return nil
}

func strictError[E error](unknown []E) error {
	texts := make([]string, 0, len(unknown))
	for _, e := range unknown {
		texts = append(texts, e.Error())
	}
	return apierrors.NewBadRequest("strict decoding error: " + strings.Join(texts, ", "))
}

func (typed) admit(*Server, map[string]any, map[string]any, bool) error { return nil }
