// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func TestFlagsMayBeAnywhere(t *testing.T) {
	for given, want := range map[string]string{
		"explain web -n shop":              "explain -n shop web",
		"-n shop explain web":              "explain -n shop web",
		"explain web --from=10.0.0.1":      "explain --from=10.0.0.1 web",
		"status --watch -o wide":           "status --watch -o wide",
		"drain n1 --dry-run --context lab": "drain --dry-run --context lab n1",
		"drain --reason x n1":              "drain --reason x n1",
		"plan -f - -o json":                "plan -f - -o json",
		"drain -- -n1":                     "drain -- -n1",
		"--help":                           "--help",
		"explain --help":                   "explain --help",
		"__complete explain -n shop":       "__complete explain -n shop",
	} {
		got := arranged(newApp(), append([]string{"kubectl-slb"}, strings.Fields(given)...))
		if text := strings.Join(got[1:], " "); text != want {
			t.Errorf("%q is arranged as %q, want %q", given, text, want)
		}
	}
}

func TestServiceKey(t *testing.T) {
	for text, want := range map[string]world.Key{
		"web":         {Namespace: "default", Name: "web"},
		"shop/web":    {Namespace: "shop", Name: "web"},
		"service/web": {Namespace: "default", Name: "web"},
		"svc/web":     {Namespace: "default", Name: "web"},
	} {
		if got := serviceKey(text, "default"); got != want {
			t.Errorf("%q is Service %s, want %s", text, got, want)
		}
	}
}

// Every mistake is reported before the cluster is contacted, with its flag and value.
func TestMistakesAreNamed(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	for args, want := range map[string]string{
		"explain":                "explain: want one argument, SERVICE or ADDRESS, have 0",
		"explain a b":            "explain: want one argument, SERVICE or ADDRESS, have 2",
		"explain 10.0.0.300":     `explain: "10.0.0.300" is neither an IP address nor the name of a Service`,
		"explain 10.0.0.0/24":    `explain: "10.0.0.0/24" is a subnet: want an IP address without a prefix length`,
		"explain fe80::1%eth0":   `explain: "fe80::1%eth0" has a zone, which no address of a Service has`,
		"explain a --from x":     `--from "x": not an IP address`,
		"explain a -o xml":       `--output "xml": want one of [json yaml]`,
		"status a":               `status: unexpected argument "a"`,
		"bgp -o x":               `--output "x": want one of [json yaml wide]`,
		"drain":                  "drain: want one argument, NODE, have 0",
		"drain n1 --timeout -1s": "--timeout -1s: is negative",
		"plan":                   "--filename: want a FILE with the objects after the edit, or --delete",
		"plan --delete node/n1":  `--delete "node/n1": want KIND/NAME`,
		"explain a -o wide":      `--output "wide": want one of [json yaml]`,
		"status -n shop": `status: unknown flag "-n". It is a flag of explain, move, plan, import. kubectl slb status ` +
			"--help lists the flags",
		"graph -o json":                `graph: unknown flag "-o". It is a flag of explain, status, `,
		"bgp --wide":                   `bgp: unknown flag "--wide". kubectl slb bgp --help lists the flags`,
		"move a --timeout x":           `move: invalid value "x" for flag -timeout`,
		"status --as-group dev":        `--as-group "dev": needs --as`,
		"status --request-timeout -1s": `--request-timeout "-1s": want a number of seconds, or a duration as 30s or 2m`,
		"status --request-timeout x":   `--request-timeout "x": want a number of seconds, or a duration as 30s or 2m`,
		"explain a":                    "read the kubeconfig: ",
		"plan --delete l2domains/lan ": "read the kubeconfig: ",
	} {
		app := newApp()
		app.Writer, app.ErrWriter = &bytes.Buffer{}, &bytes.Buffer{}
		err := app.Run(arranged(app, append([]string{"kubectl-slb"}, strings.Fields(args)...)))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}

// Every command writes through the app's writers, so that no object can control the terminal.
func TestOutputHasNoControlCharacters(t *testing.T) {
	app, out, problems := newApp(), &bytes.Buffer{}, &bytes.Buffer{}
	app.Writer, app.ErrWriter = out, problems
	app.Commands = append(app.Commands, &cli.Command{Name: "hostile", Action: func(c *cli.Context) error {
		fmt.Fprint(c.App.Writer, painter(c.App.Writer)(explain.OK, "a\x1b[2J\n"))
		fmt.Fprint(c.App.ErrWriter, "b\u202e\n")
		return nil
	}})
	if err := app.Run([]string{"kubectl-slb", "hostile"}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String()+problems.String(), `a\u001b[2J`+"\n"+`b\u202e`+"\n"; got != want {
		t.Errorf("the output is %q, want %q", got, want)
	}
}

func TestCompletion(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	for words, want := range map[string]string{
		"d":               "drain\t",
		"explain --fro":   "--from",
		"status -o y":     "yaml",
		"explain -o w":    "",
		"explain":         "explain\t",
		"explain missing": "",
	} {
		app, out := newApp(), &bytes.Buffer{}
		app.Writer = out
		if err := app.Run(append([]string{"kubectl-slb", completeName}, strings.Split(words, " ")...)); err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if lines[len(lines)-1] != noFiles || want != "" && !strings.HasPrefix(lines[0], want) ||
			want == "" && len(lines) != 1 {
			t.Errorf("%q is completed by %q, want %q and %s", words, lines, want, noFiles)
		}
	}
}

func TestOverviewForReaders(t *testing.T) {
	v := &explain.Overview{Services: 3, Announced: 2,
		Domains: []explain.DomainOverview{{Name: "lan", PhysicalNetwork: "provider", State: explain.OK, EligibleNodes: 3,
			Shards: []v1alpha1.ShardStatus{
				{Index: 0, Active: "n1", Gateways: []string{"n1", "n2"}, Addresses: 2},
				{Index: 3, Gateways: []string{"n2", "n1"}, Addresses: 1},
				{Index: 5, Active: "n1", Gateways: []string{"n2", "n1"}, Addresses: 4}}}},
		Pools: []explain.PoolOverview{{Name: "public", State: explain.Broken, Reason: "Exhausted",
			IPv4: explain.Usage{Assigned: 5, CoolingDown: 1, Available: 4}}},
		Peers: []explain.PeerOverview{{Name: "tor", Address: "10.50.0.1", ASN: 64513, State: explain.OK, Established: 2,
			Sessions: 2, Message: "node n2 drains"}},
		Findings: []explain.Finding{{State: explain.Broken, Object: "Service shop/web", Reason: "NoEndpoints",
			Message: "none", Command: "kubectl slb explain shop/web"}}}
	var short, wide bytes.Buffer
	printOverview(&short, v, explain.Plain, false, 0)
	printOverview(&wide, v, explain.Plain, true, 0)
	for _, want := range []string{"0 5: n1 (6)", "3: none (1)", "[######....] 5/10 (1 cooling down)", "broken Exhausted",
		"2 of 2    ok: node n2 drains", "Services: 2 of 3 announced", "broken  Service shop/web: NoEndpoints: none",
		"kubectl slb explain shop/web"} {
		if !strings.Contains(short.String(), want) {
			t.Errorf("no %q in\n%s", want, short.String())
		}
	}
	for _, want := range []string{"0: *n1 n2 (2)", "3: n2 n1 (1)", "5: n2 *n1 (4)"} {
		if !strings.Contains(wide.String(), want) {
			t.Errorf("no %q in\n%s", want, wide.String())
		}
	}
	if colours(&short) {
		t.Error("output that is no terminal's has colours")
	}
}

// The names of kinds are those that kubectl accepts.
func TestKindOf(t *testing.T) {
	for name, want := range map[string]string{
		"ipaddresspool": "IPAddressPool", "ipaddresspools": "IPAddressPool", "L2Domain": "L2Domain",
		"ipaddresspools.slb.k8s.ovn.org": "IPAddressPool", "l2domain.slb.k8s.ovn.org": "L2Domain",
		"bgppeers.v1alpha1.slb.k8s.ovn.org": "BGPPeer", "BGPAdvertisement.slb.k8s.ovn.org": "BGPAdvertisement",
		"communities": "Community", "community.slb.k8s.ovn.org": "Community", "bfdprofiles": "BFDProfile",
		"node": "", "": "", "bgppeers.metallb.io": "", "communitys": "",
	} {
		if got := kindOf(name); got != want {
			t.Errorf("%q is kind %q, want %q", name, got, want)
		}
	}
}

// A command has the flags of kubectl that mean something for it, and no others.
func TestCommandsHaveFlagsThatTheyUse(t *testing.T) {
	const cluster = "kubeconfig context cluster user token as as-group request-timeout"
	for command, want := range map[string]string{
		"explain":    "CLUSTER namespace output from probe",
		"status":     "CLUSTER output watch",
		"bgp":        "CLUSTER output",
		"drain":      "CLUSTER output reason dry-run force wait timeout",
		"undrain":    "CLUSTER output dry-run",
		"move":       "CLUSTER namespace output to dry-run timeout",
		"plan":       "CLUSTER namespace output filename delete",
		"graph":      "CLUSTER file",
		"import":     "dry-run filename namespace segment bgp-nodes CLUSTER",
		"completion": "",
	} {
		var flags []string
		for _, f := range newApp().Command(command).Flags {
			flags = append(flags, f.Names()[0])
		}
		want = strings.Replace(want, "CLUSTER", cluster, 1)
		if got := strings.Join(flags, " "); got != want {
			t.Errorf("%s has the flags %s, want %s", command, got, want)
		}
	}
}

// The bar of a pool is neither empty nor full unless the pool is.
func TestBar(t *testing.T) {
	for want, u := range map[string]explain.Usage{
		"-":                                  {},
		"[..........] 0/10":                  {Available: 10},
		"[:.........] 1/1000":                {Assigned: 1, Available: 999},
		"[####:.....] 41/100":                {Assigned: 41, Available: 59},
		"[#########:] 99/100":                {Assigned: 99, Available: 1},
		"[##########] 100/100":               {Assigned: 100},
		"[##########] 0/4 (4 cooling down)":  {CoolingDown: 4},
		"[:.........] 3/9223372036854775810": {Assigned: 3, Available: math.MaxInt64},
	} {
		if got := bar(u); got != want {
			t.Errorf("%+v: %s, want %s", u, got, want)
		}
	}
}
