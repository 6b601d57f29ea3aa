// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/preview"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// planOptions are the options of command plan.
type planOptions struct {
	connection
	output
	files   cli.StringSlice
	deleted cli.StringSlice
}

// Validate returns the first problem with the options, with its flag and value.
func (o *planOptions) Validate() error {
	if len(o.files.Value())+len(o.deleted.Value()) == 0 {
		return errors.New("--filename: want a FILE with the objects after the edit, or --delete")
	}
	for _, name := range o.deleted.Value() {
		if _, _, _, ok := deletion(name, ""); !ok {
			return fmt.Errorf("--delete %q: want KIND/NAME of an IPAddressPool, L2Domain, BGPPeer, BGPAdvertisement, "+
				"BFDProfile or Community, or service/NAMESPACE/NAME", name)
		}
	}
	return o.validate()
}

// deletion returns the object that a value of --delete names: KIND/NAME or, of a Service, service/NAMESPACE/NAME, or
// service/NAME in the given namespace. ok is false if it names none.
func deletion(value, namespace string) (kind, of, name string, ok bool) {
	parts := strings.Split(value, "/")
	if len(parts) < 2 || slices.Contains(parts, "") {
		return "", "", "", false
	}
	switch resource := strings.ToLower(parts[0]); resource {
	case "service", "services", "svc":
		if len(parts) == 2 {
			return "Service", namespace, parts[1], true
		}
		return "Service", parts[1], parts[len(parts)-1], len(parts) == 3
	}
	kind = kindOf(parts[0])
	return kind, "", parts[1], kind != "" && len(parts) == 2
}

// kindOf returns the kind for a name of it that kubectl accepts, for example ipaddresspools or
// ipaddresspool.slb.k8s.ovn.org; empty if there is none.
func kindOf(name string) string {
	resource, group, qualified := strings.Cut(strings.ToLower(name), ".")
	of := v1alpha1.GroupVersion()
	if qualified && group != of.Group && group != of.Version+"."+of.Group {
		return ""
	}
	for _, kind := range []string{"IPAddressPool", "L2Domain", "BGPPeer", "BGPAdvertisement", "BFDProfile", "Community"} {
		plural, singular := meta.UnsafeGuessKindToResource(of.WithKind(kind))
		if resource == plural.Resource || resource == singular.Resource {
			return kind
		}
	}
	return ""
}

func planCommand() *cli.Command {
	var o planOptions
	return &cli.Command{
		Name:  "plan",
		Usage: "show what an edit of pools, L2Domains or BGP objects would change, without making it",
		Description: `Decides about the cluster with and without the edit, with the code of the controller, and shows
which objects and fields the edit changes, which Services lose, gain or change what, what that means for the clients of
L2Domains, which shards move, and which BGP sessions and routes change. Equal changes are grouped; those that lose
something or move to another gateway are named. -o wide lists all. Nothing is written.

Objects of an edit that the API server would refuse are named with field and value, by the rules of this version; so are
pools that overlap. The rest of the edit is planned without them. Kinds that decide nothing are ignored with a note.

Exit code: 0 nothing is lost, 1 error, 2 an object would be refused, 3 a Service loses something, or clients of an
L2Domain lose its addresses, 4 an object would have a new problem, or a new Service no address that is announced. Of
several, the first of 2, 3 and 4.

Examples:
  kubectl slb plan -f pool.yaml
  kubectl slb plan --delete l2domain/lan
  kubectl slb plan --delete service/shop/web`,
		Flags: append(append(o.connection.flags(), o.output.flags(formatJSON, formatYAML, formatWide)...),
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Destination: &o.files,
				Usage: "`FILE` with the objects after the edit; - for standard input"},
			&cli.StringSliceFlag{Name: "delete", Destination: &o.deleted,
				Usage: "`KIND/NAME` of an object to delete; service/NAMESPACE/NAME of a Service"}),
		Action: func(c *cli.Context) error {
			if err := o.Validate(); err != nil {
				return err
			}
			if err := noArguments(c); err != nil {
				return err
			}
			return o.run(c)
		},
	}
}

func (o *planOptions) run(c *cli.Context) error {
	clients, err := o.connect(c.Context)
	if err != nil {
		return err
	}
	before, err := clients.load(c.Context, nil)
	if err == nil {
		err = requireRead(before, decisive()...)
	}
	if err == nil {
		err = kube.LoadClaims(c.Context, clients.ours, before)
	}
	if err != nil {
		return err
	}
	after := before.Clone()
	now := time.Now()
	edits, err := o.edit(after, clients.namespace, c.App.Reader, now)
	if err != nil {
		return err
	}
	unknown, err := clients.findSecrets(c.Context, before, after)
	if err != nil {
		return err
	}
	changes := preview.Compare(before, after, now)
	for _, e := range edits {
		changes.Add(e)
	}
	changes.Add(&objects.Edited{Ignored: unknown})
	if after.HasExternalPool() && slices.Contains(before.Unread, objects.UnreadClaims) {
		changes.Notes = append(changes.Notes, "what providers have answered is not known, because you must not read "+
			"IPAddressClaims and IPAddresses in namespace "+before.ControllerNamespace())
	}
	if before.UnreadEgressIPs {
		changes.Notes = append(changes.Notes, "addresses of EgressIPs are taken for free ones, because you must not read "+
			"EgressIPs of "+convert.EgressIPs().Group)
	}
	done, err := o.printAs(c.App.Writer, changes)
	switch {
	case err != nil:
		return err
	case !done:
		fmt.Fprint(c.App.Writer, shownChanges(changes.Text(o.format == formatWide), painter(c.App.Writer), columns()))
		if changes.Empty() {
			fmt.Fprintln(c.App.Writer, "Nothing changes.")
			break
		}
		fmt.Fprintf(c.App.Writer, "unchanged: %s\n", world.Count(changes.Unchanged, "Service"))
	}
	switch {
	case len(changes.Refused) > 0:
		return errRefused
	case changes.Disrupts():
		return errNotReachable
	case changes.HasProblems():
		return errProblem
	}
	return nil
}

// edit makes the edit in the objects, at now, and returns what became of the manifests. Those without a namespace are
// in the given one.
func (o *planOptions) edit(after *objects.Objects, namespace string, stdin io.Reader, now time.Time) ([]*objects.Edited,
	error) {
	// Deletions come first, so that a pool can get addresses of one that is deleted.
	for _, name := range o.deleted.Value() {
		kind, of, object, _ := deletion(name, namespace) // validated
		if !after.Delete(kind, of, object) {
			return nil, fmt.Errorf("--delete %s: there is no such object", name)
		}
	}
	var edits []*objects.Edited
	for _, name := range o.files.Value() {
		read := func() ([]byte, error) { return os.ReadFile(name) } //nolint:gosec // the user names the file
		if name == "-" {
			read = func() ([]byte, error) { return io.ReadAll(stdin) }
		}
		text, err := read()
		if err != nil {
			return nil, fmt.Errorf("--filename: %w", err)
		}
		edited, err := after.Edit(text, namespace, now, crd.Check)
		if err != nil {
			return nil, fmt.Errorf("--filename %s: %w", name, err)
		}
		edits = append(edits, edited)
	}
	return edits, nil
}

// findSecrets sets which Secrets of an edit do not exist, and returns notes about those of which that is not known.
// Only BGPPeers that get another passwordSecret, which is not in the edit, are checked. Nothing but the metadata of a
// Secret is read.
func (c *clients) findSecrets(ctx context.Context, before, after *objects.Objects) (notes []string, err error) {
	const otherwise = ". Without it, the BGPPeer has no session"
	absent := map[string]bool{}
	before.AbsentSecrets, after.AbsentSecrets = absent, absent // the edit creates those in EditedSecrets only
	for _, p := range after.Peers {
		r, was := p.Spec.PasswordSecret, objects.Named(before.Peers, p.Name)
		secret := after.PasswordOf(p)
		if r == nil || after.EditedSecrets[secret] || was != nil && was.Spec.PasswordSecret != nil &&
			was.Spec.PasswordSecret.Name == r.Name && was.Spec.Backend == p.Spec.Backend {
			continue
		}
		about := fmt.Sprintf("BGPPeer %s: spec.passwordSecret: Secret %s: not known whether it exists, because ", p.Name,
			cmp.Or(secret, r.Name))
		if secret == "" {
			notes = append(notes, about+"the namespace of frr-k8s is not known: it has no FRRConfiguration"+otherwise)
			continue
		}
		namespace, name, _ := strings.Cut(secret, "/")
		err := c.core.CoreV1().RESTClient().Get().Namespace(namespace).Resource("secrets").Name(name).
			SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Do(ctx).Error()
		switch {
		case apierrors.IsNotFound(err):
			absent[secret] = true
		case apierrors.IsForbidden(err):
			notes = append(notes, about+"you must not read it"+otherwise)
		case err != nil:
			return nil, fmt.Errorf("read Secret %s: %w", secret, err)
		}
	}
	return notes, nil
}

// shownChanges paints the effect at the start of each line, and wraps the text behind it at a width; 0 wraps none.
func shownChanges(text string, paint explain.Paint, width int) string {
	states := map[string]explain.State{string(preview.Loses): explain.Broken, "problem:": explain.Broken,
		string(preview.Gains): explain.OK, string(preview.Alters): explain.Warning,
		string(preview.Created): explain.OK, string(preview.Updated): explain.Warning,
		string(preview.Deleted): explain.Warning}
	var b strings.Builder
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(line, " ")
		state, painted := states[word]
		if !painted {
			b.WriteString(explain.Wrap(strings.TrimSuffix(line, "\n"), 2, width) + "\n")
			continue
		}
		rest = strings.TrimSpace(rest)
		indent := len(line) - len(rest) - 1 // of the text behind the effect
		b.WriteString(paint(state, word) + strings.Repeat(" ", indent-len(word)) + explain.Wrap(rest, indent, width) + "\n")
	}
	return b.String()
}
