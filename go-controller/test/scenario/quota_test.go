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

func (c *tenants) do(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	c.log = append(c.log, line)
	c.cluster.run("> " + line + "\n")
}

// one returns one of the texts.
func (c *tenants) one(texts ...string) string { return texts[c.IntN(len(texts))] }

func (c *tenants) address() string { return fmt.Sprintf("%q", fmt.Sprintf("10.61.0.%d", 1+c.IntN(4))) }

func (c *tenants) externalIPs() string {
	list := []string{c.address(), c.address()}
	slices.Sort(list)
	return c.one("null", "["+list[0]+"]", "["+strings.Join(slices.Compact(list), ",")+"]")
}

func (c *tenants) create(service string) {
	c.do("lb %s allow-shared-ip=k {ports: [{name: p, port: %d}]}", service, 80+c.IntN(3))
}

func (c *tenants) run(t *testing.T) {
	names := []string{"cafe/a", "cafe/b", "cafe/c", "bank/x", "bank/y"}
	c.do("nodes 3")
	c.do("start controller no-database")
	quota, sharing := 1+c.IntN(2), c.one("Namespace", "Namespace", "Cluster")
	c.do("pool own 10.61.0.0/28 {externalIPs: true, quotaPerNamespace: %d, sharing: %s%s%s}", quota, sharing,
		c.one("", ", reuseDelay: 5s"), c.one("", "", ", autoAssign: false"))
	for _, n := range names {
		c.create(n)
		c.do("wait 1s")
	}
	c.do("api delay services %sms", c.one("5", "20", "200"))
	for range 60 {
		c.edit(c.one(names...))
		<-time.After(time.Duration(c.IntN(60)*c.IntN(8)) * time.Millisecond)
	}
	c.do("wait 30s")
	has, owner := map[string]map[string]bool{}, map[string]string{}
	for _, n := range names {
		o, err := c.get("service/" + n)
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
		t.Log(strings.Join(c.log, "\n"))
	}
}

func (c *tenants) edit(service string) {
	const patch, requests = "patch service/%s ", `"metadata":{"annotations":{"slb.k8s.ovn.org/load-balancer-ips":%s}}`
	switch c.IntN(10) {
	case 0, 1:
		c.do(patch+`{"spec":{"externalIPs":%s}}`, service, c.externalIPs())
	case 2, 3:
		c.do(patch+"{"+requests+"}", service, c.one("null", c.address(), c.address()))
	case 4, 5:
		c.do(patch+"{"+requests+`,"spec":{"externalIPs":%s}}`, service, c.one("null", c.address(), c.address()),
			c.externalIPs())
	case 6:
		c.do(patch+`{"spec":{"type":%q}}`, service, c.one("ClusterIP", "LoadBalancer", "LoadBalancer"))
	case 7:
		c.do(patch+`{"spec":{"ports":[{"name":"p","port":%d}]}}`, service, 80+c.IntN(3))
	case 8:
		c.do("annotate service/%s slb.k8s.ovn.org/allow-shared-ip=%s", service, c.one("k", "k", "l"))
	default:
		switch c.IntN(4) {
		case 0:
			c.do("kill controller")
			c.do("start controller no-database")
		case 1:
			c.do("delete service/%s", service)
			<-time.After(time.Duration(c.IntN(300)) * time.Millisecond)
			c.create(service)
		}
	}
}
