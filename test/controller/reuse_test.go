// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const single = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: single}
spec: {addresses: [10.50.0.200/32], reuseDelay: 1h}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: single}
spec: {physicalNetwork: physnet, ipAddressPools: [single], subnets: [{cidr: 10.50.0.0/24, gateway: 10.50.0.1}]}
`

// leases waits until the pool lists n leases, and returns "ADDRESS SERVICE RELEASED" of each.
func (c *cluster) leases(t *testing.T, n int) []string {
	t.Helper()
	var list []string
	eventually(t, fmt.Sprintf("%d leases", n), func() bool {
		list = strings.Split(strings.TrimSuffix(c.kubectl(t, "get", "ippool", "single", "-o",
			`jsonpath={range .status.leases[*]}{.address} {.name} {.releasedAt}{"\n"}{end}`), "\n"), "\n")
		list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
		return len(list) == n
	})
	return list
}

// rested waits until the lease of a Service is released, and returns the time of the release.
func (c *cluster) rested(t *testing.T, name string) time.Time {
	t.Helper()
	var at time.Time
	eventually(t, "the address of "+name+" is in cooldown", func() bool {
		words := strings.Fields(c.leases(t, 1)[0])
		if len(words) != 3 || words[1] != name {
			return false
		}
		var err error
		if at, err = time.Parse(time.RFC3339, words[2]); err != nil {
			t.Fatal(err)
		}
		return true
	})
	return at
}

func (c *cluster) delay(t *testing.T, d time.Duration) {
	t.Helper()
	c.kubectl(t, "patch", "ippool", "single", "--type=merge", fmt.Sprintf(`-p={"spec":{"reuseDelay":"%s"}}`, d))
}

// The only address of a pool cools down after its Service is deleted, whether a controller observes the deletion or
// not. Before the delay has passed, only a Service of the same name gets the address. After the delay, the pending
// Service gets it immediately.
func addressesRest(t *testing.T, c *cluster) {
	o := databases(t)
	p := c.controller(t, o)
	c.apply(t, single)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	address := c.addresses(t, "web")
	if got := c.leases(t, 1); got[0] != "10.50.0.200 web " {
		t.Errorf("leases %q, want web's", got)
	}

	c.delete(t, "web")
	eventually(t, "OVN has no row of it", func() bool { return len(o.loadBalancers(t)) == 0 })
	released := c.rested(t, "web")
	c.service(t, "waits")
	until := released.Add(time.Hour).UTC().Format(time.RFC3339)
	waits := c.condition(t, "waits", v1alpha1.ConditionAllocated, v1alpha1.ReasonPoolExhausted)
	c.service(t, "asks", func(s *corev1.Service) {
		s.Annotations = map[string]string{v1alpha1.AnnotationLoadBalancerIPs: address[0]}
	})
	asks := c.condition(t, "asks", v1alpha1.ConditionAllocated, v1alpha1.ReasonAddressCoolingDown)
	for _, got := range []metav1.Condition{waits, asks} {
		for _, want := range []string{`pool "single"`, "spec.reuseDelay", until} {
			if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, want) {
				t.Errorf("Allocated: %+v, want False with %s", got, want)
			}
		}
	}
	c.kubectl(t, "wait", "ippool/single", "--for=jsonpath={.status.coolingDownIPv4}=1")

	// A restarted controller has the same state and writes nothing.
	writes := func() [2]int { return [2]int{p.writes(t, "Service"), p.writes(t, "IPAddressPool")} }
	c.settled(t, writes)
	p.stop()
	p = c.controller(t, o)
	eventually(t, "the new process is ready", func() bool { return p.Healthy() == nil })
	if n := c.settled(t, writes); n != [2]int{} {
		t.Errorf("%d writes to Services and %d to pools after a restart, want none", n[0], n[1])
	}
	if again := c.rested(t, "web"); !again.Equal(released) {
		t.Errorf("after a restart the address was released at %s, want %s", again, released)
	}

	// The Service that had the address gets it back, before Services that have waited longer.
	c.service(t, "web")
	if got := c.addresses(t, "web"); !slices.Equal(got, address) {
		t.Errorf("web came back and has %v, want %v", got, address)
	}

	// The Service is deleted while no controller runs. The next controller knows the former owner of the address.
	eventually(t, "web's lease", func() bool { return c.leases(t, 1)[0] == "10.50.0.200 web " })
	p.stop()
	c.delete(t, "web")
	p = c.controller(t, o)
	released = c.rested(t, "web")
	eventually(t, "waiting Services get a message", func() bool {
		until := released.Add(time.Hour).UTC().Format(time.RFC3339)
		return strings.Contains(c.condition(t, "waits", v1alpha1.ConditionAllocated, v1alpha1.ReasonPoolExhausted).Message,
			until)
	})
	c.delete(t, "asks")

	// A shorter delay also applies to addresses that already cool down.
	delay := time.Since(released).Truncate(time.Second) + 3*time.Second
	c.delay(t, delay)
	if got := c.addresses(t, "waits"); !slices.Equal(got, address) {
		t.Errorf("waits has %v, want %v", got, address)
	}
	late := time.Since(released.Add(delay))
	// Without a timer the Service would wait for the hourly pass, longer than any wait of a test.
	if late < 0 {
		t.Errorf("waits got the address %s before the end of the rest", -late)
	}
	t.Logf("waits was seen with the address %s after the end of the rest", late)
	eventually(t, "its lease", func() bool { return c.leases(t, 1)[0] == "10.50.0.200 waits " })

	// Without a delay there are no leases, and no Service waits.
	c.delay(t, 0)
	c.leases(t, 0)
	c.delete(t, "waits")
	c.service(t, "next")
	c.addresses(t, "next")
}
