// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// leaveDefault is how long peers have to move traffic away from a node that drains.
const leaveDefault = 2 * time.Second

// Options configure a Speaker.
type Options struct {
	// BFD may be nil if no session has any.
	BFD BFD
	// Turn grants the permission to close a session for an edit; nil to close it at once.
	Turn Turn
	// Notify is called when the result of States has changed; nil for no calls. It must not block.
	Notify func()
	// DrainTime is the time between adding the community GRACEFUL_SHUTDOWN to routes and withdrawing them; 0 for 2 s.
	DrainTime time.Duration
}

// Speaker runs BGP sessions.
type Speaker struct {
	options Options
	// changed has a token if the wanted sessions have changed.
	changed chan struct{}
	// maxDelay limits the delay of peers whose sessions do not last. It is maxBackoff, except in tests.
	maxDelay time.Duration
	sockets  sockets

	mu    sync.Mutex
	peers map[string]*peer
}

// New returns a Speaker without sessions.
func New(o Options) *Speaker {
	if o.Notify == nil {
		o.Notify = func() {}
	}
	if o.DrainTime == 0 {
		o.DrainTime = leaveDefault
	}
	return &Speaker{options: o, changed: make(chan struct{}, 1), maxDelay: maxBackoff, peers: map[string]*peer{}}
}

// Run runs the sessions passed to Set until the context ends. It leaves them open then. The end of the process closes
// them, which a peer with graceful restart tolerates.
func (s *Speaker) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ignored := func(err error) {
		if err != nil {
			klog.FromContext(ctx).Error(err, "Sessions of other BGP speakers of this node are not seen")
		}
	}
	events, err := s.sockets.subscribe()
	ignored(err)
	if err == nil {
		running.Go(func() { ignored(s.sockets.watch(ctx, events, s.otherConnectionEnded)) })
	}
	for {
		ignored(s.sockets.setPorts(s.ports()))
		for _, p := range s.waiting() {
			running.Go(func() { p.run(ctx) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
	}
}

// waiting returns the peers that are not running yet, and marks them as running.
func (s *Speaker) waiting() []*peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*peer
	for _, p := range s.peers {
		if !p.running {
			p.running = true
			all = append(all, p)
		}
	}
	return all
}

// ports returns the ports of the routers.
func (s *Speaker) ports() (ports []uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		if want := p.wanted(); want != nil {
			ports = append(ports, want.Neighbor.Port)
		}
	}
	return ports
}

// otherConnectionEnded tells all peers that a connection of another process has ended.
func (s *Speaker) otherConnectionEnded(c socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		p.otherConnectionEnded(c)
	}
}

// Set replaces the complete set of sessions. The argument must not be modified afterwards. The routes of a session that
// is not in the set any more are withdrawn, and the session is closed.
func (s *Speaker) Set(sessions []bgp.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[string]*bgp.Session, len(sessions))
	for i := range sessions {
		wanted[sessions[i].Peer] = &sessions[i]
	}
	for name := range wanted {
		if s.peers[name] == nil {
			s.peers[name] = newPeer(name, s)
		}
	}
	for name, p := range s.peers {
		p.set(wanted[name])
	}
	signal(s.changed)
}

// Changed must be called when the state of BFD for a peer has changed, or when the node gets its turn. It does not
// block.
func (s *Speaker) Changed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.peers[name]; p != nil {
		signal(p.wake)
	}
}

// States returns the states of all sessions, sorted by peer. A removed session is included until it is closed.
func (s *Speaker) States() []State {
	s.mu.Lock()
	peers := make([]*peer, 0, len(s.peers))
	for _, p := range s.peers {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	states := make([]State, 0, len(peers))
	for _, p := range peers {
		state := p.State()
		if s.options.BFD != nil {
			is := s.options.BFD.Session(p.name)
			state.BFD, state.BFDFailures = is.State, is.Failures
			state.BFDProblem = cmp.Or(is.Problem, state.whyNotUp(is, p.wanted()))
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.Peer, b.Peer) })
	return states
}

// removeIfUnwanted removes a peer that is not wanted any more. It reports false if the peer is wanted again.
func (s *Speaker) removeIfUnwanted(p *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.wanted() != nil {
		return false
	}
	delete(s.peers, p.name)
	return true
}

// signal puts a token into a channel of capacity 1, unless there is one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
