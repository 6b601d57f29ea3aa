// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsTooLarge reports whether the API server did not store an object because of its size. It answers 413 only if the
// request is too large to be read. What etcd or its client refuse becomes an internal error with their text
// (isTooLargeError in k8s.io/apiserver/pkg/endpoints/handlers; kubernetes/kubernetes#112152).
func IsTooLarge(err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError {
		return false
	}
	message := status.Status().Message
	return strings.Contains(message, "etcdserver: request is too large") ||
		strings.Contains(message, "trying to send message larger than max")
}
