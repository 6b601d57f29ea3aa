// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/preview"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// movePoll is the time between two reads of the status of an L2Domain.
	movePoll = 200 * time.Millisecond
	// withdrawTime is how long the removal of a request may take when the command ends.
	withdrawTime = 5 * time.Second
)

// moveOptions are the options of command move.
type moveOptions struct {
	connection
	output
	to      string
	dryRun  bool
	timeout time.Duration
}

// Validate returns the first problem with the options, with its flag and value.
func (o *moveOptions) Validate() error {
	switch {
	case o.to == "":
		return errors.New("--to: is missing: the node to move to")
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %s: is not positive", o.timeout)
	}
	return o.validate()
}

func moveCommand() *cli.Command {
	var o moveOptions
	return &cli.Command{
		Name:      "move",
		Usage:     "move the addresses of a Service to another gateway",
		ArgsUsage: "SERVICE | NAMESPACE/SERVICE",
		Description: `Addresses move in shards: all Services with addresses of the same shard move, too. Shows them, and
waits until the status of the L2Domain shows the move. Established connections continue. The shards stay on the
node until it fails or drains, and do not return afterwards.

Examples:
  kubectl slb move shop/web --to n2 --dry-run
  kubectl slb move web -n shop --to n2`,
		Flags: append(append(o.connection.flags(), o.output.flags(formatWide)...),
			&cli.StringFlag{Name: "to", Destination: &o.to, Usage: "`NODE` that becomes the active gateway"},
			&cli.BoolFlag{Name: "dry-run", Destination: &o.dryRun, Usage: "show what would move, and change nothing"},
			&cli.DurationFlag{Name: "timeout", Destination: &o.timeout, Value: time.Minute,
				Usage: "`DURATION` to wait at most; then the request is withdrawn"}),
		Action: withArgument("SERVICE", o.Validate, o.run),
	}
}

func (o *moveOptions) run(c *cli.Context, name string) error {
	clients, err := o.connect(c.Context)
	if err != nil {
		return err
	}
	key := serviceKey(name, clients.namespace)
	cluster, err := clients.load(c.Context, nil)
	if err == nil {
		err = requireRead(cluster, decisive()...)
	}
	if err != nil {
		return err
	}
	if cluster.Service(key) == nil {
		var namespaces []string
		for _, s := range cluster.Services {
			if s.Name == key.Name {
				namespaces = append(namespaces, s.Namespace)
			}
		}
		return notFoundIn(key, namespaces)
	}
	moves, reason := preview.Move(cluster, key, o.to, rand.String(10), time.Now())
	if reason != "" {
		return errors.New(reason)
	}
	if len(moves) == 0 {
		fmt.Fprintf(c.App.Writer, "Nothing moves: node %s is the active gateway of %s already.\n", o.to, key)
		return nil
	}
	for _, m := range moves {
		fmt.Fprint(c.App.Writer, shownChanges(m.Text(o.format == formatWide), painter(c.App.Writer), columns()))
	}
	if o.dryRun {
		fmt.Fprintln(c.App.Writer, "dry run: nothing was changed")
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context, o.timeout)
	defer cancel()
	for _, m := range moves {
		if err := clients.move(ctx, &m, o.timeout); err != nil {
			return err
		}
		for _, s := range m.Shards {
			fmt.Fprintf(c.App.Writer, "shard %d of L2Domain %s has moved to %s\n", s.Index, m.Domain, s.To)
		}
	}
	return nil
}

// move makes the request, waits until it is over, and removes it. A request that stays, because this process was
// killed, is carried out once and then has no effect.
func (c *clients) move(ctx context.Context, m *preview.DomainMove, timeout time.Duration) (err error) {
	if err := c.request(ctx, m); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
		defer cancel()
		err = cmp.Or(err, c.withdraw(ctx, m))
	}()
	last := "no controller has taken up the request"
	err = wait.PollUntilContextCancel(ctx, movePoll, true, func(ctx context.Context) (bool, error) {
		d, err := c.ours.Domains.Get(ctx, m.Domain, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("get L2Domain %s: %w", m.Domain, err)
		}
		if is := d.Annotations[v1alpha1.AnnotationMove]; is != m.Request {
			return false, fmt.Errorf("L2Domain %s: the request was replaced (annotation %s): %q", m.Domain,
				v1alpha1.AnnotationMove, is)
		}
		progress := d.Status.Move
		if progress == nil || progress.Request != m.Request {
			return false, nil
		}
		if last = progress.Message; progress.State == v1alpha1.MoveFailed {
			return false, fmt.Errorf("L2Domain %s: %s", m.Domain, last)
		}
		return progress.State == v1alpha1.MoveCompleted && shows(d, m), nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("L2Domain %s: the move has not completed within %s (--timeout): %s", m.Domain, timeout, last)
	case ctx.Err() != nil:
		return fmt.Errorf("L2Domain %s: interrupted: %s", m.Domain, last)
	}
	return err
}

// shows reports whether the status of a domain has the shards on the gateways to which they moved.
func shows(d *v1alpha1.L2Domain, m *preview.DomainMove) bool {
	active := map[int]string{}
	for _, s := range d.Status.Shards {
		active[int(s.Index)] = s.Active
	}
	for _, s := range m.Shards {
		if active[s.Index] != s.To {
			return false
		}
	}
	return true
}

// request sets the annotation of an L2Domain, unless another move is in progress.
func (c *clients) request(ctx context.Context, m *preview.DomainMove) error {
	return c.edit(ctx, m, &m.Request, func(d *v1alpha1.L2Domain) (bool, error) {
		if busy := preview.MoveInProgress(d); busy != "" {
			return false, errors.New(busy)
		}
		return true, nil
	})
}

// withdraw removes the annotation of an L2Domain if it still has the request.
func (c *clients) withdraw(ctx context.Context, m *preview.DomainMove) error {
	return c.edit(ctx, m, nil, func(d *v1alpha1.L2Domain) (bool, error) {
		return d.Annotations[v1alpha1.AnnotationMove] == m.Request, nil
	})
}

// edit writes the annotation of an L2Domain if may returns true for the object that the API server has. A nil value
// removes the annotation.
func (c *clients) edit(ctx context.Context, m *preview.DomainMove, value *string,
	may func(*v1alpha1.L2Domain) (bool, error)) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d, err := c.ours.Domains.Get(ctx, m.Domain, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if yes, err := may(d); err != nil || !yes {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": d.ResourceVersion,
			"annotations": map[string]any{v1alpha1.AnnotationMove: value}}})
		if err != nil {
			return err
		}
		_, err = c.ours.Domains.Patch(ctx, m.Domain, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("edit annotation %s of L2Domain %s: %w", v1alpha1.AnnotationMove, m.Domain, err)
	}
	return nil
}
