// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func TestInvalidNodeOptionsNameTheField(t *testing.T) {
	good := func() *nodeOptions {
		return &nodeOptions{node: "n1", ovsAddress: "unix:/run/db.sock", runDir: "/run/ovn", guard: true}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*nodeOptions){
		"--node-name":                      func(o *nodeOptions) { o.node = "" },
		`--ovs-address "udp:1"`:            func(o *nodeOptions) { o.ovsAddress = "udp:1" },
		"--ovn-run-dir":                    func(o *nodeOptions) { o.runDir = "" },
		`--enable-bgp "false"`:             func(o *nodeOptions) { o.guard = false },
		`--sdn-health-bind-address "9484"`: func(o *nodeOptions) { o.sdn, o.sdnHealth = true, "9484" },
		`--sb-client-cert "": is needed`:   func(o *nodeOptions) { o.sb.PrivateKey = "/etc/hostname" },
		`--healthz-bind-address "`:         func(o *nodeOptions) { o.healthAddress = "9482" },
	} {
		o := good()
		spoil(o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error doesn't name %s: %v", want, err)
		}
	}
}

type idleModule struct{}

func (idleModule) Run(context.Context) error { return nil }
func (idleModule) Healthy() error            { return errors.New("waits") }

// watchedModule is a module whose loop has been stuck for a time.
type watchedModule struct {
	idleModule
	stuck time.Duration
}

func (m watchedModule) Alive(stall time.Duration) error {
	if m.stuck > stall {
		return errors.New("stuck")
	}
	return nil
}

// A restart helps if a loop is stuck, not if a module waits.
func TestStuckModuleFailsLiveness(t *testing.T) {
	for stuck, want := range map[time.Duration]string{0: "", 30 * time.Second: "", 2 * time.Minute: "l2: stuck"} {
		p := probesOf(map[string]module{"l2": watchedModule{stuck: stuck}, "report": idleModule{}})
		if p.ready() == nil {
			t.Error("waiting modules are ready")
		}
		if err := p.alive(); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("stuck for %s: %v, want %q", stuck, err, want)
		}
	}
}

// What a predecessor reported for a module that is not enabled any more must not be renewed.
func TestReportsOfDisabledModulesAreCleared(t *testing.T) {
	for _, c := range []struct {
		options nodeOptions
		want    []string
	}{
		{nodeOptions{guard: true}, []string{v1alpha1.AnnotationZone, v1alpha1.AnnotationAgent}},
		{nodeOptions{guard: true, l2: true}, []string{v1alpha1.AnnotationAgent}},
		{nodeOptions{guard: true, l2: true, sdn: true}, nil},
		{nodeOptions{l2: true}, []string{v1alpha1.AnnotationFaults, v1alpha1.AnnotationLocalnets,
			v1alpha1.AnnotationConflicts, v1alpha1.AnnotationAnnouncedConflicts, v1alpha1.AnnotationProbed,
			v1alpha1.AnnotationTunnels, v1alpha1.AnnotationAgent}},
	} {
		if got := notReported(&c.options); !slices.Equal(got, c.want) {
			t.Errorf("guard %t, l2 %t: %v, want %v", c.options.guard, c.options.l2, got, c.want)
		}
	}
}
