// SPDX-License-Identifier: Apache-2.0

package bfd_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
)

// TestGoldens runs the scripts. A script consists of these lines:
//
//	END transmit=300ms receive=300ms multiplier=3 [passive]   END, a or b, starts or gets other settings
//	END restarts                                              and has lost its state
//	END disable, END enable
//	END hears STATE my=7 your=1 transmit=1s receive=300ms multiplier=3 [poll] [final] [demand]
//	END cut, END mended                                       its packets are lost, or arrive again
//	run 3s, meet 3s                                           time passes; meet does not record it
//
// The transcript contains each packet that differs from the previous one, each change of a state and, after a run, the
// packets that were repeated.
func TestGoldens(t *testing.T) {
	golden.RunArchives(t, "testdata/*.txtar", func(archive *txtar.Archive) (string, error) {
		if archive.Files[0].Name != "script" {
			return "", fmt.Errorf("unknown file %q", archive.Files[0].Name)
		}
		d := newDialogue()
		for line := range strings.Lines(string(archive.Files[0].Data)) {
			if err := d.play(strings.Fields(line)); err != nil {
				return "", fmt.Errorf("script: line %q: %w", strings.TrimSpace(line), err)
			}
		}
		return d.out.String(), nil
	})
}

// dialogue contains two ends and a link with a delay of 1 ms between them.
type dialogue struct {
	now  time.Time
	ends [2]*end
	wire []flight // in the order of arrival
	out  strings.Builder

	unrecorded bool
}

const delay = time.Millisecond

type flight struct {
	at     time.Time
	to     *end
	packet bfd.Packet
}

type end struct {
	name     string
	session  *bfd.Session
	settings bfd.Settings
	lives    uint32
	cut      bool
	state    bfd.State
	// lastSent is the last packet in the transcript, sent when the last identical one was sent.
	lastSent        bfd.Packet
	sent            time.Time
	again           int
	nearest, widest time.Duration
}

var start = time.Unix(0, 0)

func newDialogue() *dialogue {
	return &dialogue{now: start, ends: [2]*end{{name: "a"}, {name: "b"}}}
}

func (d *dialogue) play(words []string) error {
	if len(words) < 2 {
		return errors.New("want two fields or more")
	}
	switch words[0] {
	case "a":
		return d.act(d.ends[0], words[1:])
	case "b":
		return d.act(d.ends[1], words[1:])
	case "run", "meet":
		span, err := time.ParseDuration(words[1])
		d.unrecorded = words[0] == "meet"
		d.run(span)
		d.unrecorded = false
		return err
	}
	return fmt.Errorf("unknown field %q", words[0])
}

func (d *dialogue) act(e *end, words []string) error {
	d.say(e, e.name+" "+strings.Join(words, " "))
	switch words[0] {
	case "cut", "mended":
		e.cut = words[0] == "cut"
	case "restarts":
		d.begin(e)
	case "disable":
		d.send(e)(e.session.Disable(d.now))
	case "enable":
		d.send(e)(e.session.Enable(d.now))
	case "hears":
		p, err := packet(words[1:])
		if err != nil {
			return err
		}
		d.send(e)(e.session.Receive(d.now, p))
	default:
		p, err := packet(words)
		if err != nil {
			return err
		}
		e.settings = bfd.Settings{Transmit: p.Transmit, Receive: p.Receive, Multiplier: p.Multiplier,
			Passive: slices.Contains(words, "passive")}
		if e.session == nil {
			d.begin(e)
			return nil
		}
		d.send(e)(e.session.Configure(d.now, e.settings))
	}
	return nil
}

func (d *dialogue) begin(e *end) {
	number := uint32(1)
	if e == d.ends[1] {
		number = 2
	}
	e.session = bfd.New(number+10*e.lives, e.settings, d.now)
	e.lives++
	d.observe(e)
}

// packet parses the fields of a packet.
func packet(words []string) (p bfd.Packet, err error) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		var n uint64
		var e error
		switch key {
		case "AdminDown", "Down", "Init", "Up":
			for p.State = bfd.AdminDown; p.State.String() != key; p.State++ {
			}
		case "my", "your", "multiplier":
			n, e = strconv.ParseUint(value, 10, 32)
		case "transmit":
			p.Transmit, e = time.ParseDuration(value)
		case "receive":
			p.Receive, e = time.ParseDuration(value)
		case "poll":
			p.Poll = true
		case "final":
			p.Final = true
		case "demand":
			p.Demand = true
		case "passive":
		default:
			e = fmt.Errorf("unknown field %q", word)
		}
		switch key {
		case "my":
			p.My = uint32(n)
		case "your":
			p.Your = uint32(n)
		case "multiplier":
			p.Multiplier = uint8(n)
		}
		err = errors.Join(err, e)
	}
	return p, err
}

// run advances the time, each step to the next arrival or deadline.
func (d *dialogue) run(span time.Duration) {
	for until := d.now.Add(span); ; {
		next := until
		if len(d.wire) > 0 && d.wire[0].at.Before(next) {
			next = d.wire[0].at
		}
		for _, e := range d.ends {
			if e.session == nil {
				continue
			}
			if at := e.session.Deadline(); !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if next.After(d.now) {
			d.now = next
		}
		if !next.Before(until) {
			break
		}
		d.step()
	}
	for _, e := range d.ends {
		d.recount(e)
	}
}

func (d *dialogue) step() {
	for len(d.wire) > 0 && !d.wire[0].at.After(d.now) {
		f := d.wire[0]
		d.wire = d.wire[1:]
		if s := f.to.session; s != nil && (f.packet.Your == 0 || f.packet.Your == s.Discriminator()) {
			d.send(f.to)(s.Receive(d.now, f.packet))
		}
	}
	for _, e := range d.ends {
		if e.session == nil {
			continue
		}
		if at := e.session.Deadline(); !at.IsZero() && !at.After(d.now) {
			d.send(e)(e.session.Wake(d.now))
		}
	}
}

// send processes the result of a session: it records the state, and sends the packet over the link.
func (d *dialogue) send(e *end) func(bfd.Packet, bool) {
	return func(p bfd.Packet, is bool) {
		d.observe(e)
		if !is {
			return
		}
		if !e.cut {
			other := d.ends[0]
			if other == e {
				other = d.ends[1]
			}
			d.wire = append(d.wire, flight{d.now.Add(delay), other, p})
		}
		gap := d.now.Sub(e.sent)
		e.sent = d.now
		if p == e.lastSent {
			if e.again == 0 {
				e.nearest, e.widest = gap, gap
			}
			e.again++
			e.nearest, e.widest = min(e.nearest, gap), max(e.widest, gap)
			return
		}
		d.recount(e)
		e.lastSent = p
		d.say(e, e.name+": "+text(p))
	}
}

func (d *dialogue) recount(e *end) {
	switch e.again {
	case 0:
	case 1:
		d.say(e, fmt.Sprintf("%s: the same once more, after %d ms", e.name, e.widest.Milliseconds()))
	default:
		d.say(e, fmt.Sprintf("%s: the same %d times, %d to %d ms apart", e.name, e.again, e.nearest.Milliseconds(),
			e.widest.Milliseconds()))
	}
	e.again = 0
}

func (d *dialogue) observe(e *end) {
	is := e.session.Status()
	if is.State == e.state {
		return
	}
	e.state = is.State
	d.recount(e)
	line := fmt.Sprintf("%s is %s", e.name, is.State)
	if is.Diagnostic != bfd.NoDiagnostic {
		line += ": " + is.Diagnostic.String()
	}
	d.say(e, line)
}

// say writes a line; those of b are indented.
func (d *dialogue) say(e *end, line string) {
	if d.unrecorded {
		return
	}
	margin := ""
	if e == d.ends[1] {
		margin = "        "
	}
	fmt.Fprintf(&d.out, "%7.3f %s%s\n", d.now.Sub(start).Seconds(), margin, line)
}

func text(p bfd.Packet) string {
	words := []string{p.State.String()}
	for word, is := range map[string]bool{"poll": p.Poll, "final": p.Final, "demand": p.Demand} {
		if is {
			words = append(words, word)
		}
	}
	slices.Sort(words[1:])
	line := fmt.Sprintf("%s, %d to %d, %v x %d, takes %v", strings.Join(words, " "), p.My, p.Your, p.Transmit,
		p.Multiplier, p.Receive)
	if p.Diagnostic != bfd.NoDiagnostic {
		line += ", " + p.Diagnostic.String()
	}
	return line
}
