// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// faults are what does not work.
type faults struct {
	// away is set while no client except those of users reaches the server.
	away bool
	// watchEpoch is raised to end all watches.
	watchEpoch int
	// delays are how long requests that write take, by resource.
	delays map[string]time.Duration
	// rivals are the numbers of updates that another client precedes, by resource.
	rivals map[string]int
	// refusals are why webhooks refuse objects, by resource, and refused is how many they have refused.
	refusals map[string]string
	refused  int
	// forbidden are the resources that only users may read.
	forbidden map[string]bool
	// full is the namespace whose Services have the largest size that etcd stores, so that their statuses can't grow.
	full string
}

// refuses reports whether a client does not reach the server. s.mu must be held.
func (f *faults) refuses(c *Client) bool { return c.cut || f.away && !c.user }

// SetAway makes the server unreachable for all clients except those of users, or reachable again.
func (s *Server) SetAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.away = away
	s.wake()
}

// Backup returns a function that restores the present objects with their present resource versions, as from a snapshot
// of etcd. The next versions are ones that other objects had before. All watches end, as the API server is restarted.
func (s *Server) Backup() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, objects := s.revision, map[*table]map[string]map[string]any{}
	for _, t := range s.tables {
		objects[t] = maps.Clone(t.objects) // objects are replaced, never modified
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.revision = revision
		for t, content := range objects {
			t.objects, t.events, t.compacted = maps.Clone(content), nil, revision
		}
		s.faults.watchEpoch++
		s.wake()
	}
}

// EndWatches ends all watches, as an API server does from time to time.
func (s *Server) EndWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.watchEpoch++
	s.wake()
}

// Forbid sets whether only users may read a resource, as if a ClusterRole lacked it. It ends all watches.
func (s *Server) Forbid(resource string, forbid bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.forbidden == nil {
		s.faults.forbidden = map[string]bool{}
	}
	s.faults.forbidden[resource] = forbid
	s.faults.watchEpoch++
	s.wake()
}

// SetFull makes all Services of a namespace as large as etcd stores them: a write of their statuses fails.
func (s *Server) SetFull(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.full = namespace
}

// Delay makes each request that writes objects of a resource take some time before it takes effect.
func (s *Server) Delay(resource string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.delays == nil {
		s.faults.delays = map[string]time.Duration{}
	}
	s.faults.delays[resource] = d
}

// Rival makes another client write the object of each of the next n updates and patches of a resource, right before.
func (s *Server) Rival(resource string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.rivals == nil {
		s.faults.rivals = map[string]int{}
	}
	s.faults.rivals[resource] += n
}

// WebhookAway is the reason for which the API server itself refuses objects, because it does not reach a webhook.
const WebhookAway = `failed calling webhook: no endpoints available for service "frr-k8s-webhook-service"`

// Refuse makes a webhook refuse all objects of a resource, or new ones of a CustomResourceDefinition, for a reason. An
// empty one ends that. In the reason, # stands for the number of the refusal.
func (s *Server) Refuse(resource, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.refusals == nil {
		s.faults.refusals = map[string]string{}
	}
	s.faults.refusals[resource] = why
}

// refusal returns the error by which objects of a resource are refused, if they are. s.mu must be held.
func (s *Server) refusal(of schema.GroupResource) error {
	why := s.faults.refusals[of.Resource]
	switch why {
	case "":
		return nil
	case WebhookAway:
		return apierrors.NewInternalError(errors.New(why))
	}
	s.faults.refused++
	why = strings.Replace(why, "#", fmt.Sprint(s.faults.refused), 1)
	return apierrors.NewForbidden(of, "", fmt.Errorf("admission webhook denied the request: %s", why))
}

// rivalAnnotation is what the other client writes.
const rivalAnnotation = "example.org/writes"

// precede writes an object as the other client if that is due. s.mu must be held.
func (s *Server) precede(q *request) {
	obj, err := s.get(q)
	if err != nil || s.faults.rivals[q.kind.Resource] == 0 {
		return
	}
	s.faults.rivals[q.kind.Resource]--
	next := object(obj).DeepCopy()
	annotations := next.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[rivalAnnotation] = fmt.Sprint(s.revision)
	next.SetAnnotations(annotations)
	s.put(s.tables[q.kind.groupResource()], keyOf(q.namespace, q.name), next.Object)
}
