// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// schemaOf records the FlowSchema that classified the last response, and its priority level.
type schemaOf struct {
	http.RoundTripper
	uid, level types.UID
}

func (s *schemaOf) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		s.uid = types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID))
		s.level = types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID))
	}
	return response, err
}

// testFlowControl sends requests of the controller, of a node and of others. The API server classifies them as
// intended: what a node reads takes no place from what nodes report, and no other account takes one from the
// controller, nor does one of kube-system, of which each node has tokens. It leaves what it installs.
func (s *server) testFlowControl(t *testing.T) {
	s.apply(t, s.kubectl(t, "kustomize", filepath.Join(manifests, "interconnect-bgp")))
	ctx, lease := t.Context(), []byte(`{"spec":{"leaseDurationSeconds":1}}`)
	lists := func(c *kubernetes.Clientset) error {
		_, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	}
	reports := func(c *kubernetes.Clientset) error {
		_, err := c.CoordinationV1().Leases(v1alpha1.GuardsNamespace).Patch(ctx, "n1", types.MergePatchType, lease,
			metav1.PatchOptions{})
		return err
	}
	levels := map[string]types.UID{} // by FlowSchema
	for name, c := range map[string]struct {
		account string
		request func(*kubernetes.Clientset) error
		want    string
	}{
		"the controller reads":       {"ovn-kubernetes:ovnkube-slb", lists, "ovnkube-slb-controller"},
		"the controller writes":      {"ovn-kubernetes:ovnkube-slb", reports, "ovnkube-slb-controller"},
		"a node reads":               {"ovn-kubernetes:ovnkube-slb-node", lists, "ovnkube-slb-node"},
		"a node reports":             {"ovn-kubernetes:ovnkube-slb-node", reports, "ovnkube-slb-reports"},
		"a Pod with another account": {"ovn-kubernetes:default", lists, "service-accounts"},
		"kube-proxy":                 {"kube-system:kube-proxy", lists, "kube-system-service-accounts"},
	} {
		config := s.RESTConfig()
		namespace, _, _ := strings.Cut(c.account, ":")
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + c.account,
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		}
		seen := &schemaOf{}
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			seen.RoundTripper = rt
			return seen
		})
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.kube.FlowcontrolV1().FlowSchemas().Get(ctx, c.want, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		await.NoError(t, name, func(context.Context) error {
			if err := c.request(client); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				return err
			}
			if seen.uid != want.UID {
				return fmt.Errorf("FlowSchema %s, want that of %s (%s)", seen.uid, want.UID, c.want)
			}
			return nil
		})
		levels[c.want] = seen.level
	}
	for schema, level := range levels {
		for other, its := range levels {
			if level == "" || schema != other && level == its {
				t.Errorf("FlowSchemas %s and %s have priority level %q, want one each", schema, other, level)
			}
		}
	}
}
