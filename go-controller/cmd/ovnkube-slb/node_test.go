// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
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
