// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patched applies a patch to a copy of an object.
func patched(k *Kind, old map[string]any, patch []byte, contentType string) (map[string]any, error) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, fmt.Errorf("encode an object: %w", err)
	}
	kind, _, _ := strings.Cut(contentType, ";")
	var after []byte
	switch types.PatchType(kind) {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, patch)
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			after, err = operations.Apply(before)
		}
	case types.StrategicMergePatchType:
		t, builtIn := k.admission.(interface{ example() any })
		if !builtIn {
			return nil, unsupported(kind)
		}
		after, err = strategicpatch.StrategicMergePatch(before, patch, t.example())
	default:
		return nil, unsupported(kind)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return decode(after)
}

func unsupported(contentType string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("patches of type %q are not supported", contentType))
}
