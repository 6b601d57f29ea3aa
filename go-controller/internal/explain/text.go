// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
)

// Paint formats a text that shows a state, for example with a colour.
type Paint func(s State, text string) string

// Plain is the Paint that changes nothing.
func Plain(_ State, text string) string { return text }

// Text returns the result for readers: the first broken link with its cause and the command against it, then all links.
func (r *Result) Text(paint Paint) string {
	var b strings.Builder
	state, answer := OK, "reachable, as far as the cluster shows"
	if slices.ContainsFunc(r.Links, func(l Link) bool { return l.Name == LinkProbe && l.State == OK }) {
		answer = "reachable from this machine"
	}
	switch r.Reachable {
	case No:
		state, answer = Broken, "not reachable"
	case Maybe:
		state, answer = Unknown, "not known to be reachable"
	}
	if r.FirstBroken != nil && r.FirstBroken.Name == LinkProbe {
		answer += " from this machine"
	}
	subject := r.Service
	if len(r.Addresses) > 0 {
		subject += " (" + strings.Join(r.Addresses, ", ") + ")"
	}
	fmt.Fprintf(&b, "%s: %s\n", subject, paint(state, answer))
	if l := r.FirstBroken; l != nil {
		fmt.Fprintf(&b, "\n  %s\n  %s\n", paint(l.State, strings.TrimSpace("first broken link: "+l.Name+" "+l.Object)+": "+
			l.Reason), l.Message)
		if l.Command != "" {
			fmt.Fprintf(&b, "  %s\n", advice(l.Command))
		}
	}
	names, objects := 0, 0
	for _, l := range r.Links {
		names, objects = max(names, len(l.Name)), max(objects, len(l.Object))
	}
	b.WriteString("\n")
	for i := range r.Links {
		l := &r.Links[i]
		message := l.Message
		switch {
		case l == r.FirstBroken:
			message = l.Reason + ", see above"
		case l.Reason != "":
			message = l.Reason + ": " + message
		}
		fmt.Fprintf(&b, "  %s %-*s  %-*s  %s\n", paint(l.State, fmt.Sprintf("%-7s", l.State)), names, l.Name, objects,
			l.Object, message)
		if l.State == Warning && l.Command != "" {
			fmt.Fprintf(&b, "  %*s %s\n", 7+1+names+2+objects+1, "", advice(l.Command))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", note)
	}
	return b.String()
}
