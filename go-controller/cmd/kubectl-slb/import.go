// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb/cluster"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// importOptions are the flags of `kubectl slb import metallb`.
type importOptions struct {
	cluster   connection
	dryRun    bool
	files     []string
	namespace string
	segments  []metallb.Segment
	// peerNodes are labels of the nodes to which BGPPeers are limited.
	peerNodes map[string]string
}

// importCommand imports the configuration of another load balancer.
func importCommand() *cli.Command {
	var o importOptions
	return &cli.Command{
		Name:      "import",
		Usage:     "import the configuration of another load balancer: MetalLB",
		ArgsUsage: "metallb",
		Description: `Reads MetalLB's IPAddressPools, L2Advertisements, BGPPeers, BGPAdvertisements, BFDProfiles and
Communities, or the ConfigMap of MetalLB up to 0.12, and creates the objects of slb.k8s.ovn.org. Settings without an
equivalent are reported, and what changes in objects that the cluster has already. Fields of those that another field
manager has set are not overwritten. MetalLB's objects and Services are not changed. docs/migrate-from-metallb.md has
all steps of a migration.

Examples:
  kubectl slb import metallb --dry-run --segment physnet=10.50.0.0/24@10.50.0.1,fd00:50::/64@fd00:50::1
  kubectl slb import metallb --segment physnet/100=10.60.0.0/24@10.60.0.1
  kubectl slb import metallb --dry-run --filename metallb.yaml`,
		Flags:  o.flags(),
		Action: o.read,
	}
}

func (o *importOptions) flags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Usage: "print the objects as YAML, with the findings as comments, and change nothing"},
		&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"},
			Usage: "read MetalLB's objects from `FILE` instead of the cluster; - is the standard input"},
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: "metallb-system", Category: categoryCluster,
			Usage: "MetalLB's `NAMESPACE`"},
		&cli.StringSliceFlag{Name: "segment", Usage: "network on which L2Advertisements announce, as " +
			"`NETWORK[/VLAN]=CIDR[@GATEWAY],...`: its name in ovn-bridge-mappings, its VLAN, its subnets and their routers"},
		&cli.StringFlag{Name: "bgp-nodes", Usage: "limit BGPPeers to nodes with the label `KEY=VALUE`, so that nodes are " +
			"migrated one after another; import again without this flag afterwards"},
	}, o.cluster.clusterFlags()...)
}

// read reads the flags, and runs the command.
func (o *importOptions) read(c *cli.Context) error {
	if c.NArg() != 1 || c.Args().First() != "metallb" {
		return fmt.Errorf("arguments %q: want metallb", c.Args().Slice())
	}
	o.dryRun, o.files, o.namespace = c.Bool("dry-run"), c.StringSlice("filename"), c.String("namespace")
	if text := c.String("bgp-nodes"); text != "" {
		var err error
		if o.peerNodes, err = labels.ConvertSelectorToLabelsMap(text); err != nil {
			return fmt.Errorf("--bgp-nodes: %w", err)
		}
	}
	// The values of a StringSliceFlag are split at commas, which separate the subnets of a segment.
	for _, text := range joinSegments(c.StringSlice("segment")) {
		s, err := metallb.ParseSegment(text)
		if err != nil {
			return fmt.Errorf("--segment: %w", err)
		}
		o.segments = append(o.segments, s)
	}
	return o.run(c.Context, c.App.Reader, c.App.Writer)
}

// joinSegments joins the parts of each segment. Only the first part contains an equals sign.
func joinSegments(parts []string) []string {
	var out []string
	for _, p := range parts {
		if len(out) == 0 || strings.Contains(p, "=") {
			out = append(out, p)
		} else {
			out[len(out)-1] += "," + p
		}
	}
	return out
}

func (o *importOptions) run(ctx context.Context, in io.Reader, out io.Writer) error {
	input := metallb.Input{Segments: o.segments, PeerNodes: o.peerNodes}
	for _, file := range o.files {
		data, err := readFile(file, in)
		if err != nil {
			return err
		}
		objects, err := metallb.Parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		input.Objects = append(input.Objects, objects...)
	}
	// A conversion of files needs no cluster. One that is not reachable must not delay it for long.
	offline := len(o.files) > 0 && o.dryRun
	if offline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, offlineTimeout)
		defer cancel()
	}
	t, err := o.readCluster(ctx, &input)
	if err != nil && !offline {
		return err
	}
	result := metallb.Convert(input)
	if !o.dryRun {
		return o.apply(ctx, t, &input, result, out)
	}
	if err != nil {
		result.Add(metallb.Finding{Severity: metallb.Note, Message: "no cluster was read, so objects of slb.k8s.ovn.org " +
			"that it has do not count: " + err.Error()})
	} else {
		result.Add(cluster.MergeExisting(ctx, t.objects, result.Objects, input.Existing)...)
	}
	return printResult(out, result)
}

// offlineTimeout limits the time for reading a cluster that is not needed.
const offlineTimeout = 5 * time.Second

// target is the cluster of an import.
type target struct {
	objects dynamic.Interface
	core    kubernetes.Interface
}

// readCluster adds what the cluster has to the input: MetalLB's objects if there are no files, our objects, and the
// facts with which they are compared.
func (o *importOptions) readCluster(ctx context.Context, input *metallb.Input) (*target, error) {
	config, _, err := o.cluster.config()
	if err != nil {
		return nil, err
	}
	t := &target{}
	if t.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if t.core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if len(o.files) == 0 {
		if input.Objects, err = cluster.ReadMetalLB(ctx, t.objects, o.namespace); err != nil {
			return nil, err
		}
	}
	if input.Existing, err = cluster.ReadExisting(ctx, t.objects); err != nil {
		return t, err
	}
	return t, cluster.AddFacts(ctx, t.core, input)
}

func readFile(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

func printResult(out io.Writer, result *metallb.Result) error {
	text, err := result.YAML()
	if err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	if result.Failed() {
		return errors.New("some objects can't be created as they should be: see the errors above")
	}
	return nil
}

// awaitRead waits until the controller has read L2Domains. Without them it must hold addresses of their pools for which
// MetalLB answers.
func awaitRead(ctx context.Context, client dynamic.Interface, domains []metallb.Object, out io.Writer) error {
	for _, d := range domains {
		read, err := cluster.AwaitRead(ctx, client, d)
		if err != nil {
			return err
		}
		if !read {
			fmt.Fprintf(out, "warning: no controller of ovnkube-slb has read L2Domain %s yet: is it installed? The import goes "+
				"on. Addresses for which MetalLB answers may be held until MetalLB is removed (AddressConflict)\n", d.GetName())
			return nil
		}
	}
	return nil
}

// apply creates the objects. It changes nothing if a setting would be lost, if MetalLB's controller runs, or if the API
// server would refuse an object.
func (o *importOptions) apply(ctx context.Context, t *target, input *metallb.Input, result *metallb.Result,
	out io.Writer) error {
	for _, f := range result.Findings {
		fmt.Fprintln(out, f)
	}
	if result.Failed() {
		return errors.New("nothing was created: see the errors above. Correct MetalLB's objects or those of the cluster, " +
			"or edit the output of --dry-run and apply it with kubectl")
	}
	running, err := cluster.RunningControllers(ctx, t.core, o.namespace)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		command := printable.Command("kubectl -n %s scale deployment --replicas=0", o.namespace)
		for _, name := range running {
			command += printable.Command(" %s", name)
		}
		return fmt.Errorf("nothing was created: MetalLB's controller (Deployment %s) runs, and two controllers would write "+
			"the statuses of Services. Stop it first: %s", strings.Join(running, ", "), command)
	}
	checked := &metallb.Result{Findings: cluster.Check(ctx, t.objects, result.Objects, input.Existing)}
	for _, f := range checked.Findings {
		fmt.Fprintln(out, f)
	}
	if checked.Failed() {
		return errors.New("nothing was created: the API server would refuse objects")
	}
	var domains []metallb.Object
	for _, object := range result.Objects {
		switch object.(type) {
		case *v1alpha1.L2Domain:
			domains = append(domains, object)
		case *v1alpha1.IPAddressPool:
			if err := awaitRead(ctx, t.objects, domains, out); err != nil {
				return err
			}
			domains = nil
		}
		text, err := cluster.Apply(ctx, t.objects, object)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, text)
	}
	fmt.Fprintln(out, "MetalLB's kinds have the same names: use full names, such as kubectl get bgppeers.slb.k8s.ovn.org")
	return nil
}
