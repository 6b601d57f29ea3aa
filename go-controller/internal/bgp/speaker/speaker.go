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

// leaveDefault is how long peers have to move traffic away from a node that leaves.
const leaveDefault = 2 * time.Second

// Options of a Speaker.
type Options struct {
	// BFD may be nil if no session has any.
	BFD BFD
	// Turn is asked before a session is closed for an edit; nil for at once.
	Turn Turn
	// Notify is called when States has changed; nil for nobody. It must not block.
	Notify func()
	// Leave is how long routes have the community GRACEFUL_SHUTDOWN before they are withdrawn; 0 for 2 s.
	Leave time.Duration
}

// Speaker keeps sessions.
type Speaker struct {
	options Options
	// changed has a token if there are peers that do not run yet.
	changed chan struct{}
	gate    *gate

	mu    sync.Mutex
	peers map[string]*peer
	// idle are servers without a session.
	idle []*server
}

// New returns a Speaker without sessions.
func New(o Options) *Speaker {
	if o.Notify == nil {
		o.Notify = func() {}
	}
	if o.Leave == 0 {
		o.Leave = leaveDefault
	}
	return &Speaker{options: o, changed: make(chan struct{}, 1), gate: newGate(), peers: map[string]*peer{}}
}

// Run keeps the sessions that were Set until the context ends. It leaves them open then: the
// end of the process is what ends them, and what a peer with graceful restart gets over.
func (s *Speaker) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
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

// waiting are the peers that do not run yet, and run from now on.
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

// Set says which sessions there are to be, all of them. What is handed over must not be
// changed afterwards. A session that is not among them any more is withdrawn and closed.
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
			notice(s.changed)
		}
	}
	for name, p := range s.peers {
		p.set(wanted[name])
	}
}

// Changed is called when what BFD says of the path to a peer has changed, or when it is the node's turn. It does not block.
func (s *Speaker) Changed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.peers[name]; p != nil {
		notice(p.wake)
	}
}

// States are those of all sessions, by peer. One that was removed is among them until it is closed.
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
			state.BFD = s.options.BFD.Session(p.name).State
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.Peer, b.Peer) })
	return states
}

// borrow is a server without a session.
func (s *Speaker) borrow(log klog.Logger) *server {
	s.mu.Lock()
	if last := len(s.idle) - 1; last >= 0 {
		defer s.mu.Unlock()
		idle := s.idle[last]
		s.idle = s.idle[:last]
		return idle
	}
	s.mu.Unlock()
	return newServer(s.gate, log)
}

// gone takes a peer out that nobody wants any more, with its server, and tells whether it did:
// it may be wanted again.
func (s *Speaker) gone(p *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.wanted() != nil {
		return false
	}
	delete(s.peers, p.name)
	if p.server != nil {
		s.idle = append(s.idle, p.server)
	}
	return true
}

// notice puts a token into a channel for one, unless one is there.
func notice(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
