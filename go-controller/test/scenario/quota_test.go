// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
)

// Tenants edit their Services at random while writes are slow and the controller is killed. In the end no namespace has
// more addresses than its quota, and no address is of two namespaces. QUOTA_SEEDS is the number of runs.
func TestTenantsStayWithinTheirQuota(t *testing.T) {
	kinds, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	seeds, err := strconv.Atoi(os.Getenv("QUOTA_SEEDS"))
	if err != nil {
		seeds = worldtest.Rounds(40)
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tenants := tenants{Rand: rand.New(rand.NewPCG(uint64(seed), 1)), //nolint:gosec // a seed
					cluster: newCluster(t, kinds, &txtar.Archive{})}
				defer tenants.stopAll()
				tenants.run(t)
			})
		})
	}
}

// tenants edit Services of two namespaces.
type tenants struct {
	*rand.Rand
	*cluster
	log []string
}

func (ts *tenants) do(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	ts.log = append(ts.log, line)
	ts.cluster.run("> " + line + "\n")
}

// one returns one of the texts.
func (ts *tenants) one(texts ...string) string { return texts[ts.IntN(len(texts))] }

func (ts *tenants) address() string {
	return fmt.Sprintf("%q", fmt.Sprintf("10.61.0.%d", 1+ts.IntN(4)))
}

func (ts *tenants) externalIPs() string {
	list := []string{ts.address(), ts.address()}
	slices.Sort(list)
	return ts.one("null", "["+list[0]+"]", "["+strings.Join(slices.Compact(list), ",")+"]")
}

func (ts *tenants) create(service string) {
	ts.do("lb %s allow-shared-ip=k {ports: [{name: p, port: %d}]}", service, 80+ts.IntN(3))
}

func (ts *tenants) run(t *testing.T) {
	names := []string{"cafe/a", "cafe/b", "cafe/c", "bank/x", "bank/y"}
	ts.do("nodes 3")
	ts.do("start controller no-database")
	quota, sharing := 1+ts.IntN(2), ts.one("Namespace", "Namespace", "Cluster")
	ts.do("pool own 10.61.0.0/28 {externalIPs: true, quotaPerNamespace: %d, sharing: %s%s%s}", quota, sharing,
		ts.one("", ", reuseDelay: 5s"), ts.one("", "", ", autoAssign: false"))
	for _, n := range names {
		ts.create(n)
		ts.do("wait 1s")
	}
	ts.do("api delay services %sms", ts.one("5", "20", "200"))
	for range 60 {
		ts.edit(ts.one(names...))
		<-time.After(time.Duration(ts.IntN(60)*ts.IntN(8)) * time.Millisecond)
	}
	ts.do("wait 30s")
	has, owner := map[string]map[string]bool{}, map[string]string{}
	for _, n := range names {
		o, err := ts.get("service/" + n)
		if err != nil {
			continue // deleted
		}
		var s corev1.Service
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s); err != nil {
			t.Fatal(err)
		}
		if has[s.Namespace] == nil {
			has[s.Namespace] = map[string]bool{}
		}
		for _, a := range append(convert.Assigned(&s), convert.HeldExternalIPs(&s)...) {
			has[s.Namespace][a.String()] = true
			if other := owner[a.String()]; other != "" && other != s.Namespace && sharing == "Namespace" {
				t.Errorf("%s is of %s and %s", a, other, s.Namespace)
			}
			owner[a.String()] = s.Namespace
		}
	}
	for namespace, addrs := range has {
		if len(addrs) > quota {
			t.Errorf("%s has %v, and its quota is %d", namespace, addrs, quota)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(ts.log, "\n"))
	}
}

func (ts *tenants) edit(service string) {
	const patch, requests = "patch service/%s ", `"metadata":{"annotations":{"slb.k8s.ovn.org/load-balancer-ips":%s}}`
	switch ts.IntN(10) {
	case 0, 1:
		ts.do(patch+`{"spec":{"externalIPs":%s}}`, service, ts.externalIPs())
	case 2, 3:
		ts.do(patch+"{"+requests+"}", service, ts.one("null", ts.address(), ts.address()))
	case 4, 5:
		ts.do(patch+"{"+requests+`,"spec":{"externalIPs":%s}}`, service, ts.one("null", ts.address(), ts.address()),
			ts.externalIPs())
	case 6:
		ts.do(patch+`{"spec":{"type":%q}}`, service, ts.one("ClusterIP", "LoadBalancer", "LoadBalancer"))
	case 7:
		ts.do(patch+`{"spec":{"ports":[{"name":"p","port":%d}]}}`, service, 80+ts.IntN(3))
	case 8:
		ts.do("annotate service/%s slb.k8s.ovn.org/allow-shared-ip=%s", service, ts.one("k", "k", "l"))
	default:
		switch ts.IntN(4) {
		case 0:
			ts.do("kill controller")
			ts.do("start controller no-database")
		case 1:
			ts.do("delete service/%s", service)
			<-time.After(time.Duration(ts.IntN(300)) * time.Millisecond)
			ts.create(service)
		}
	}
}
