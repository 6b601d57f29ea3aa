// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// apiServer answers requests for lists: with the items that it has, by plural name, and otherwise with empty ones.
type apiServer struct {
	mu sync.Mutex
	// items are JSON. forbidden are resources that the user must not read.
	items     map[string]string
	forbidden map[string]bool
	// forbiddenPaths are lists that the user must not read, by their path.
	forbiddenPaths map[string]bool
	// patched are the paths of objects that were changed, and read those of lists and objects that were read.
	patched, read []string
	// selected are the field selectors of lists, by path.
	selected map[string][]string
	// refused are resources whose objects can't be written, and owned those whose spec.addresses another field manager
	// has set.
	refused map[string]bool
	owned   map[string]string
	// stored are the objects that the API server would store, by resource, if they are not those of the request.
	stored map[string]string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	status := func(code int, reason string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, reason)
	}
	resource := path.Base(r.URL.Path)
	if r.Method == http.MethodGet {
		s.read = append(s.read, r.URL.Path)
		if s.selected == nil {
			s.selected = map[string][]string{}
		}
		s.selected[r.URL.Path] = append(s.selected[r.URL.Path], r.URL.Query().Get("fieldSelector"))
	}
	switch {
	case r.Method == http.MethodPatch && s.refused[path.Base(path.Dir(r.URL.Path))]:
		status(http.StatusUnprocessableEntity, "Invalid")
	case r.Method == http.MethodPatch && s.owned[path.Base(path.Dir(r.URL.Path))] != "":
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict",`+
			`"message":"Apply failed with 1 conflict","details":{"causes":[{"reason":"FieldManagerConflict",`+
			`"field":".spec.addresses","message":"conflict with \"%s\""}]}}`, s.owned[path.Base(path.Dir(r.URL.Path))])
	case r.Method == http.MethodPatch && s.stored[path.Base(path.Dir(r.URL.Path))] != "":
		fmt.Fprint(w, s.stored[path.Base(path.Dir(r.URL.Path))])
	case r.Method == http.MethodPatch && r.URL.Query().Has("dryRun"):
		if _, err := io.Copy(w, r.Body); err != nil {
			panic(err)
		}
	case r.Method == http.MethodPatch:
		s.patched = append(s.patched, r.URL.Path)
		fmt.Fprint(w, "{}")
	case resource == "ovnkube-slb": // the Lease of the controller
		status(http.StatusNotFound, "NotFound")
	case s.forbidden[resource], s.forbiddenPaths[r.URL.Path]:
		status(http.StatusForbidden, "Forbidden")
	case resource == "absent", strings.HasPrefix(r.URL.Path, "/apis/ipam.cluster.x-k8s.io/"):
		status(http.StatusNotFound, "NotFound")
	default:
		header := ""
		if kind := kindOf(resource); kind != "" && strings.Contains(r.URL.Path, "/slb.") {
			header = `"apiVersion":"slb.k8s.ovn.org/v1alpha1","kind":"` + kind + `List",`
		}
		if resource == "egressips" {
			header = `"apiVersion":"k8s.ovn.org/v1","kind":"EgressIPList",`
		}
		fmt.Fprintf(w, `{%s"items":[%s]}`, header, s.items[resource])
	}
}

// run runs the program against the API server. It returns the standard output and the error.
func (s *apiServer) run(t *testing.T, command string) (string, error) {
	t.Helper()
	return runWith(t, s.serve(t), command)
}

// serve starts the API server until the test ends. It returns the name of a kubeconfig.
func (s *apiServer) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],`+
		`"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// runWith runs the program with a kubeconfig. It returns the standard output and the error.
func runWith(t *testing.T, config, command string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", config)
	app, out := newApp(), &bytes.Buffer{}
	app.Writer, app.ErrWriter = out, out
	err := app.RunContext(t.Context(), arranged(app, append([]string{"kubectl-slb"}, strings.Fields(command)...)))
	return out.String(), err
}

// undrain says what the node did before.
func TestUndrainNamesWhatEnds(t *testing.T) {
	for node, want := range map[string]string{
		`{"metadata":{"name":"n1"}}`: "node n1 does not drain: it had no annotation slb.k8s.ovn.org/drain\n",
		`{"metadata":{"name":"n1","annotations":{"slb.k8s.ovn.org/drain":"kernel"}}}`: "node n1 no longer drains; " +
			"shards that have left it return only if their L2Domain sets failover.preempt\n",
		`{"metadata":{"name":"n1","annotations":{"slb.k8s.ovn.org/drain":"kernel"}},"spec":{"unschedulable":true,` +
			`"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}}`: "node n1 still drains: taint " +
			"ToBeDeletedByClusterAutoscaler:NoSchedule\n",
	} {
		s := &apiServer{items: map[string]string{"nodes": node}}
		if out, err := s.run(t, "undrain n1"); err != nil || !strings.HasSuffix(out, want) || len(s.patched) != 1 {
			t.Errorf("%s: error %v, patched %v, output %q, want %q", node, err, s.patched, out, want)
		}
	}
}

// What the user must not read is not taken for empty.
func TestUnreadIsNotEmpty(t *testing.T) {
	for command, forbidden := range map[string]string{
		"plan --delete l2domain/lan":         "leases",
		"plan --delete l2domain/lan -o json": "endpointslices",
		"move web -n shop --to n1":           "nodes",
		"drain n1":                           "bgpnodestatuses",
		"drain n1 --wait":                    "l2domains",
		"drain n1 --wait=false":              "nodes",
		"drain n1 --dry-run":                 "bgppeers",
		"undrain n1":                         "nodes",
		"undrain n1 --dry-run":               "services",
		"bgp":                                "bgpnodestatuses",
		"graph":                              "l2domains",
	} {
		s := &apiServer{items: map[string]string{"nodes": `{"metadata":{"name":"n1"}}`,
			"l2domains": `{"metadata":{"name":"lan"}}`}, forbidden: map[string]bool{forbidden: true}}
		want := "not read, because the API server does not allow it: " + forbidden
		if out, err := s.run(t, command); err == nil || err.Error() != want || len(s.patched) > 0 {
			t.Errorf("%s: error %v, want %q; patched %v; output %q", command, err, want, s.patched, out)
		}
	}
}

// Services that the user must not read are not counted as none.
func TestUnreadServicesAreNotCounted(t *testing.T) {
	s := &apiServer{forbidden: map[string]bool{"services": true}}
	out, err := s.run(t, "status")
	const want = "Services: not read\n\nWhat is wrong:\n  unknown Resources services: NotRead:"
	if err != nil || !strings.Contains(out, want) {
		t.Errorf("error %v, output\n%s", err, out)
	}
}

// A node that may be the last one for Services drains only if that is forced.
func TestDrainWithoutAPreviewIsRefused(t *testing.T) {
	s := &apiServer{items: map[string]string{"nodes": `{"metadata":{"name":"n1"}}`},
		forbidden: map[string]bool{"leases": true}}
	const want = "node n1 is not drained: what moves is not known: not read, because the API server does not allow it: " +
		"leases; --force drains it all the same"
	if out, err := s.run(t, "drain n1 --wait=false"); err == nil || err.Error() != want || len(s.patched) > 0 {
		t.Errorf("error %v, want %q; patched %v, output\n%s", err, want, s.patched, out)
	}
}

// A node drains without a preview for a user who must not read everything, and status says what is not known.
func TestUnreadIsNamed(t *testing.T) {
	for command, want := range map[string]string{
		"drain n1 --wait=false --force": "What moves is not known: not read, because the API server does not allow it: " +
			"leases\nnode n1 drains\n",
		"undrain n1": "What moves is not known: not read, because the API server does not allow it: leases\n" +
			"node n1 does not drain: it had no annotation slb.k8s.ovn.org/drain\n",
		"status": "Services: 0 of 0 announced\n\nWhat is wrong:\n  unknown Resources leases: NotRead: the API server does " +
			"not allow them to be read\n\nnote: there is no Lease ovnkube-slb in the namespaces ovn-kubernetes and " +
			"ovnkube-slb, so it is not known whether a controller runs (it has none without --leader-elect)\n",
		"bgp": "note: routes are not known: not read, because the API server does not allow it: leases\n" +
			"There is no BGPPeer (docs/tasks/bgp.md).\n",
	} {
		s := &apiServer{items: map[string]string{"nodes": `{"metadata":{"name":"n1"}}`},
			forbidden: map[string]bool{"leases": true}}
		if out, err := s.run(t, command); err != nil || out != want {
			t.Errorf("%s: error %v, output\n%s\nwant\n%s", command, err, out, want)
		}
	}
}

// What NetworkPolicies of its namespace mean for a Service is part of the answer about its address.
func TestExplainReadsNetworkPolicies(t *testing.T) {
	s := &apiServer{items: map[string]string{
		"services": `{"metadata":{"name":"web","namespace":"shop"},"spec":{"type":"LoadBalancer","selector":{"app":"web"}},` +
			`"status":{"loadBalancer":{"ingress":[{"ip":"10.50.0.100"}]}}}`,
		"networkpolicies": `{"metadata":{"name":"limits","namespace":"shop"},"spec":{"ingress":[{"ports":[{"port":80}]}]}}`}}
	if _, err := s.run(t, "explain 10.50.0.100"); !errors.Is(err, errNotReachable) ||
		!slices.Contains(s.read, "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies") {
		t.Errorf("error %v, read %v", err, s.read)
	}
	s.forbidden = map[string]bool{"networkpolicies": true}
	out, err := s.run(t, "explain 10.50.0.100")
	if !errors.Is(err, errNotReachable) || !strings.Contains(out, "does not allow it: networkpolicies\n") {
		t.Errorf("error %v, output\n%s", err, out)
	}
}

// An address is found among the Services of all namespaces, and of those that a tenant may read.
func TestExplainAddress(t *testing.T) {
	const service = `{"metadata":{"name":"web","namespace":"shop"},"spec":{"type":"LoadBalancer"},` +
		`"status":{"loadBalancer":{"ingress":[{"ip":"10.50.0.100"}]}}}`
	for address, want := range map[string]string{
		"10.50.0.100": "10.50.0.100: address of Service shop/web\n\nshop/web (10.50.0.100): not reachable\n",
		"10.50.0.101": "10.50.0.101: no Service has it, and it is in no pool\n  kubectl slb status   # the pools\n",
	} {
		s := &apiServer{items: map[string]string{"services": service}}
		if out, err := s.run(t, "explain "+address); !errors.Is(err, errNotReachable) || !strings.HasPrefix(out, want) {
			t.Errorf("%s: error %v, output\n%s\nwant\n%s", address, err, out, want)
		}
	}
	s := &apiServer{items: map[string]string{"services": service}, forbiddenPaths: map[string]bool{
		"/api/v1/services": true}}
	for address, want := range map[string]string{
		"10.50.0.100": "10.50.0.100: address of Service shop/web\n",
		"10.50.0.101": "10.50.0.101: not the address of a Service that you may read\n" +
			"  kubectl slb explain NAMESPACE/SERVICE\n",
	} {
		out, err := s.run(t, "explain -n shop "+address)
		if !errors.Is(err, errNotReachable) || !strings.HasPrefix(out, want) ||
			!strings.Contains(out, "note: not read, because the API server does not allow it: services\n") {
			t.Errorf("%s in a namespace: error %v, output\n%s\nwant\n%s", address, err, out, want)
		}
	}
}
