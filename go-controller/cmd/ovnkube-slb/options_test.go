// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// parse parses a command line and, if file is not empty, a configuration file with that content, as the command does.
func parse(t *testing.T, file string, args ...string) (*options, error) {
	t.Helper()
	o := &options{}
	all := settings(o)
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "ovn_k8s.conf")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	for _, s := range all {
		if err := s.flag.Apply(set); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	ctx := cli.NewContext(cli.NewApp(), set, nil)
	ctx.Command = &cli.Command{}
	for _, s := range all {
		ctx.Command.Flags = append(ctx.Command.Flags, s.flag)
	}
	if err := applyFile(ctx, path, all); err != nil {
		return o, err
	}
	return o, o.Validate()
}

func TestDefaultsAreValid(t *testing.T) {
	o, err := parse(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if !o.enabled || o.leaderElect || o.nb.Address != "unix:/var/run/ovn/ovnnb_db.sock" ||
		o.leaseNamespace != "ovn-kubernetes" ||
		o.leaseDuration != 15*time.Second || !o.metalLBAnnotations {
		t.Errorf("defaults: %+v", o)
	}
}

func TestDrainTaints(t *testing.T) {
	for file, want := range map[string]string{
		"": "node.kubernetes.io/out-of-service medik8s.io/drain ToBeDeletedByClusterAutoscaler",
		"[serviceloadbalancers]\ndrain-taints = example.com/patching, other\n": "example.com/patching other",
		"[serviceloadbalancers]\ndrain-taints =\n":                             "",
	} {
		o, err := parse(t, file)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(parseKeys(o.drainTaints), " "); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
	if _, err := parse(t, "", "--drain-taints=ok,key=value:NoSchedule"); err == nil ||
		!strings.Contains(err.Error(), `--drain-taints "key=value:NoSchedule"`) {
		t.Errorf("a taint for a key: %v", err)
	}
}

func TestLoadBalancerClasses(t *testing.T) {
	file := "[serviceloadbalancers]\nload-balancer-class = file, example.com/file\n"
	for _, c := range []struct {
		file string
		args []string
		want string
	}{
		{"", nil, ""},
		{file, nil, "file example.com/file"},
		{"", []string{"--load-balancer-class=gateways, example.com/public"}, "gateways example.com/public"},
		{file, []string{"--load-balancer-class=gateways", "--load-balancer-class=example.com/public"},
			"gateways example.com/public"},
		{"", []string{"--load-balancer-class="}, ""},
	} {
		o, err := parse(t, c.file, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.loadBalancerClasses(), " "); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.file, c.args, got, c.want)
		}
	}
	for _, class := range []string{"-gateways", "a/b/c", "under_score.example/name", strings.Repeat("a", 64)} {
		if _, err := parse(t, "", "--load-balancer-class=ok,"+class); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("--load-balancer-class %q: is no load balancer class", class)) {
			t.Errorf("%q: %v", class, err)
		}
	}
}

func TestFlagsOverrideEnvironmentOverridesFile(t *testing.T) {
	t.Setenv("K8S_APISERVER", "https://environment")
	t.Setenv("K8S_TOKEN", "environment")
	o, err := parse(t, `
[kubernetes]
apiserver=https://file
token=file
service-cidrs="10.96.0.0/16"
`, "--k8s-apiserver=https://flag")
	if err != nil {
		t.Fatal(err)
	}
	if o.apiServer != "https://flag" || o.token != "environment" || o.serviceSubnets != "10.96.0.0/16" {
		t.Errorf("apiserver %s, token %s, service CIDRs %s", o.apiServer, o.token, o.serviceSubnets)
	}
}

func TestReadsConfigFileOfOVNKubernetes(t *testing.T) {
	o, err := parse(t, `
[default]
mtu=1400
cluster-subnets=10.128.0.0/14/23,fd01::/48/64
encap-port=6081
[ovnnorth]
address=tcp:192.0.2.1:6641,tcp:192.0.2.2:6641
[ovnsouth]
address=tcp:192.0.2.1:6642
[gateway]
mode=shared
[serviceloadbalancers]
enabled=false
metallb-annotations=false
node-healthz-bind-address=127.0.0.1:9482
ovn-run-dir=/var/run/ovn
`)
	if err != nil {
		t.Fatal(err)
	}
	if o.enabled || o.metalLBAnnotations || o.nb.Address != "tcp:192.0.2.1:6641,tcp:192.0.2.2:6641" ||
		o.sb.Address != "tcp:192.0.2.1:6642" {
		t.Errorf("options: %+v", o)
	}
	nets, err := parseSubnets(o.clusterSubnets)
	if err != nil || fmt.Sprint(nets) != "[10.128.0.0/14 fd01::/48]" {
		t.Errorf("cluster subnets %v, %v", nets, err)
	}
}

func TestInvalidOptionsNameTheField(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		args []string
		want []string
	}{
		"subnet": {args: []string{"--cluster-subnets=10.0.0.0/33"}, want: []string{"--cluster-subnets", "10.0.0.0/33"}},
		"host prefix": {args: []string{"--cluster-subnets=10.0.0.0/16/12"},
			want: []string{"--cluster-subnets", "10.0.0.0/16/12", "17 and 32"}},
		"service CIDR": {args: []string{"--k8s-service-cidrs=x"}, want: []string{"--k8s-service-cidrs", `"x"`}},
		"address":      {args: []string{"--nb-address=udp:1"}, want: []string{"--nb-address", "udp:1"}},
		"no keys": {args: []string{"--nb-address=ssl:192.0.2.1:6641"},
			want: []string{"--nb-client-privkey", "--nb-client-cert", "--nb-client-cacert"}},
		"no certificates": {
			args: []string{"--nb-address=ssl:192.0.2.1:6641", "--nb-client-privkey=/dev/null", "--nb-client-cert=/dev/null",
				"--nb-client-cacert=/dev/null"},
			want: []string{`--nb-client-cert "/dev/null"`, "--nb-client-privkey /dev/null", `--nb-client-cacert "/dev/null"`}},
		"no such file": {args: []string{"--k8s-kubeconfig=/nowhere"}, want: []string{"--k8s-kubeconfig", "/nowhere"}},
		"two tokens": {args: []string{"--k8s-apiserver=https://x", "--k8s-token=a", "--k8s-token-file=/dev/null"},
			want: []string{"--k8s-token-file", "--k8s-token"}},
		"bind address": {args: []string{"--metrics-bind-address=9480"}, want: []string{"--metrics-bind-address", "9480"}},
		"one port for two": {args: []string{"--metrics-bind-address=:9480", "--healthz-bind-address=127.0.0.1:9480"},
			want: []string{`--metrics-bind-address ":9480"`, "--healthz-bind-address 127.0.0.1:9480"}},
		"no key": {args: []string{"--metrics-cert-file=/dev/null"},
			want: []string{`--metrics-cert-file "/dev/null"`, "--metrics-key-file"}},
		"no certificate": {args: []string{"--metrics-cert-file=/dev/null", "--metrics-key-file=/dev/null"},
			want: []string{`--metrics-cert-file "/dev/null"`}},
		"log level": {args: []string{"--loglevel=11"}, want: []string{"--loglevel", "11"}},
		"lease": {args: []string{"--leader-elect", "--leader-elect-lease-duration=5s"},
			want: []string{"--leader-elect-lease-duration", "5s", "10s"}},
		"unknown key": {file: "[serviceloadbalancers]\nenable=true\n",
			want: []string{"--config-file", "[serviceloadbalancers] enable"}},
		"bad value": {file: "[serviceloadbalancers]\nenabled=perhaps\n",
			want: []string{"--config-file", "enabled", "perhaps"}},
		"several at once": {args: []string{"--loglevel=11", "--nb-address=x"}, want: []string{"--loglevel", "--nb-address"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, test.file, test.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error doesn't name %s: %v", want, err)
				}
			}
		})
	}
}
