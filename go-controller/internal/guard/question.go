// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

const (
	// rounds is how often an address is asked for until silence means that nobody has it
	// (PROBE_NUM of RFC 5227).
	rounds = 3
	// askEvery is the time between them. The RFC has one to two seconds; hosts answer within
	// milliseconds, and a Service waits.
	askEvery = 250 * time.Millisecond
	// againEvery is that time for an address that a stranger has.
	againEvery = time.Second
)

// question is about one address.
type question struct {
	// id is the controller's for it, own the MAC address of our own router.
	id, own string
	network string
	vlan    int
	// silence counts the rounds since somebody answered, next is when the next one is due.
	silence int
	next    time.Time
	// found has answered; nobody if its MAC is empty.
	found convert.Stranger
}

// questions are those asked now.
type questions map[netip.Addr]*question

// take makes the questions those that the controller asks; found are strangers known from
// before.
func (q questions) take(now time.Time, asked []convert.Question, found map[netip.Addr]convert.Stranger) {
	want := questions{}
	for _, about := range asked {
		for _, a := range about.Addresses {
			is := &question{id: about.ID, own: about.Own, network: about.Network, vlan: about.VLAN, next: now, found: found[a]}
			if last := q[a]; last != nil && last.network == about.Network && last.vlan == about.VLAN {
				if last.id == about.ID {
					is = last
				} else { // asked anew, as by another controller: who answered just now still has it
					is.found = last.found
				}
			}
			want[a] = is
		}
	}
	clear(q)
	maps.Copy(q, want)
}

// due returns what to ask now, and when there is something to do again; never is the zero time.
func (q questions) due(now time.Time) (ask []netip.Addr, again time.Time) {
	for a, is := range q {
		if is.silence > rounds {
			continue // answered for good
		}
		if !is.next.After(now) {
			is.silence++
			if is.silence > rounds {
				is.found = convert.Stranger{}
				continue
			}
			ask = append(ask, a)
			is.next = now.Add(is.pause())
		}
		if again.IsZero() || is.next.Before(again) {
			again = is.next
		}
	}
	return ask, again
}

func (q *question) pause() time.Duration {
	if q.found.MAC != "" {
		return againEvery
	}
	return askEvery
}

// hear takes note of an answer from one of the networks. Who answered first is reported as
// long as anybody does.
func (q questions) hear(now time.Time, from map[string]bool, answer neighbour.Answer) {
	is := q[answer.Addr]
	if is == nil || is.vlan != answer.VLAN || !from[is.network] || strings.EqualFold(answer.MAC, is.own) {
		return
	}
	if is.found.MAC == "" {
		is.found = convert.Stranger{MAC: answer.MAC, Since: now.UTC().Truncate(time.Second)}
	}
	is.silence, is.next = 0, now.Add(againEvery)
}

// strangers are those who answer, by address.
func (q questions) strangers() map[netip.Addr]convert.Stranger {
	out := map[netip.Addr]convert.Stranger{}
	for a, is := range q {
		if is.found.MAC != "" {
			out[a] = convert.Stranger{MAC: is.found.MAC, Since: is.found.Since, Probe: is.id}
		}
	}
	return out
}
