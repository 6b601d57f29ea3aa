// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	frrk8s "github.com/ovnkube-slb/ovnkube-slb/go-controller/test/frrk8s/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const (
	// mostFRRK8s is how long a change of frr-k8s may take. What takes longer is recorded as such, and larger numbers of
	// prefixes are not measured.
	mostFRRK8s = 10 * time.Minute
	// bucket is how many prefixes an object has at most, as in internal/bgp/frrk8s.
	bucket = 128
)

// frrK8sFigure is the result of one change of all prefixes. Times are measured from the first write to the API server
// until the router's kernel has changed; they include the 3 s that frr-k8s waits for further changes.
type frrK8sFigure struct {
	Prefixes int     `json:"prefixes"`
	Apply    float64 `json:"apply_s,omitempty"`
	Withdraw float64 `json:"withdraw_s,omitempty"`
	// Controller and FRR are the resident memory with all prefixes: of frr-k8s' controller, and of FRR's daemons.
	Controller float64 `json:"controller_rss_mb,omitempty"`
	FRR        float64 `json:"frr_rss_mb,omitempty"`
	// ApplyRatio and WithdrawRatio are the times divided by those of the speaker in the same run.
	ApplyRatio    float64 `json:"apply_ratio,omitempty"`
	WithdrawRatio float64 `json:"withdraw_ratio,omitempty"`
	// Exceeded is what was not reached within mostFRRK8s.
	Exceeded string `json:"exceeded,omitempty"`
}

// compareFRRK8s measures the speaker, and then frr-k8s in its place, for each number of prefixes.
func (s *site) compareFRRK8s(ctx context.Context, r *result) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k, err := s.watch(ctx)
	if err != nil {
		return err
	}
	sizes := []int{100, 1_000, 10_000}
	r.Runs = 1
	for _, prefixes := range sizes {
		f, err := s.speaker(ctx, k, r.Runs, prefixes)
		if err != nil {
			return err
		}
		s.logf("speaker, %d prefixes: applied in %.3f s, withdrawn in %.3f s, %.0f MB", prefixes, f.Apply.Median,
			f.Withdraw.Median, f.RSS)
		if r.Speaker = append(r.Speaker, f); s.save() != nil {
			return s.save()
		}
	}
	node, client, err := s.startFRRK8s(ctx)
	if node != nil {
		defer func() { err = errors.Join(err, node.Remove(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return err
	}
	for i, prefixes := range sizes {
		f, err := s.frrK8s(ctx, k, node.Nodes[0], client, prefixes)
		if err != nil {
			return err
		}
		speaker := r.Speaker[i]
		f.ApplyRatio, f.WithdrawRatio = f.Apply/speaker.Apply.Median, f.Withdraw/speaker.Withdraw.Median
		if f.Exceeded != "" {
			s.logf("frr-k8s, %d prefixes: not reached: %s", prefixes, f.Exceeded)
		} else {
			s.logf("frr-k8s, %d prefixes: applied in %.1f s (%.0f times as long), withdrawn in %.1f s (%.0f), %.0f MB and FRR "+
				"%.0f MB", prefixes, f.Apply, f.ApplyRatio, f.Withdraw, f.WithdrawRatio, f.Controller, f.FRR)
		}
		if r.FRRK8s = append(r.FRRK8s, f); s.save() != nil {
			return s.save()
		}
		if f.Exceeded != "" {
			break // nothing larger can be faster, and FRR is still busy
		}
	}
	return nil
}

// startFRRK8s starts an API server and frr-k8s on the node, and waits for its session with the router.
func (s *site) startFRRK8s(ctx context.Context) (*frrk8s.Site, *kube.FRRClients, error) {
	c, err := frrk8s.StartPlane(ctx, frrk8s.Config{Root: ".", Dir: filepath.Join(s.dir, "frr-k8s"), Progress: os.Stderr})
	if err != nil {
		return c, nil, err
	}
	client, err := kube.NewFRRClients(c.Plane.RESTConfig(), frrk8s.Namespace)
	if err != nil {
		return c, nil, err
	}
	if err := c.Plane.Apply(ctx, "{apiVersion: v1, kind: Node, metadata: {name: n1}}"); err != nil {
		return c, nil, err
	}
	if _, err := client.Configurations.Create(ctx, configuration("session", nil), metav1.CreateOptions{}); err != nil {
		return c, nil, err
	}
	node := c.AddNode("n1", s.node())
	if err := errors.Join(node.FRR.Start(ctx), node.Start(ctx)); err != nil {
		return c, nil, err
	}
	return c, client, s.established(ctx)
}

// configuration returns an object with the session and some prefixes.
func configuration(name string, prefixes []string) *frr.Configuration {
	o := &frr.Configuration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	session := frrapi.Session{ASN: routerASN, Address: routerAddr().String(), SourceAddress: source(0).String(),
		ConnectTime: &frrapi.Duration{Duration: time.Second}}
	advertise := frrapi.Advertise{Allowed: frrapi.Allowed{Mode: frrapi.AllowFiltered, Prefixes: prefixes}}
	o.Spec.BGP.Routers = []frrapi.Router{{ASN: nodeASN, ID: source(0).String(), Prefixes: prefixes,
		Neighbors: []frrapi.Neighbor{{Session: session, Advertise: advertise}}}}
	return o
}

// frrK8s advertises prefixes by frr-k8s, and withdraws them.
func (s *site) frrK8s(ctx context.Context, k *kernel, n *frrk8s.Node, client *kube.FRRClients,
	prefixes int) (f frrK8sFigure, err error) {
	f.Prefixes = prefixes
	var objects []*frr.Configuration
	for first := 0; first < prefixes; first += bucket {
		var list []string
		for i := first; i < min(first+bucket, prefixes); i++ {
			list = append(list, prefix(i).String())
		}
		objects = append(objects, configuration(fmt.Sprintf("routes-%d", first/bucket), list))
	}
	once := func(what string, routes int, write func(*frr.Configuration) error) (float64, error) {
		bounded, cancel := context.WithTimeout(ctx, mostFRRK8s)
		defer cancel()
		began := time.Now()
		for _, o := range objects {
			if err := write(o); err != nil {
				return 0, err
			}
		}
		at, err := k.reach(bounded, routes)
		if err != nil && ctx.Err() == nil && bounded.Err() != nil {
			f.Exceeded = fmt.Sprintf("%s within %s: %v", what, mostFRRK8s, err)
			return 0, nil
		}
		return at.Sub(began).Seconds(), err
	}
	if f.Apply, err = once("apply", prefixes, func(o *frr.Configuration) error {
		_, err := client.Configurations.Create(ctx, o, metav1.CreateOptions{})
		return err
	}); err != nil {
		return f, err
	}
	own, daemons, err := n.Processes()
	if err != nil {
		return f, err
	}
	for sum, list := range map[*float64][]*proc.Process{&f.Controller: own, &f.FRR: daemons} {
		for _, p := range list {
			now, _, err := memory(p.Pid)
			if err != nil {
				return f, err
			}
			*sum += now
		}
	}
	if f.Exceeded != "" {
		return f, nil
	}
	f.Withdraw, err = once("withdraw", 0, func(o *frr.Configuration) error {
		return client.Configurations.Delete(ctx, o.Name, metav1.DeleteOptions{})
	})
	return f, err
}
