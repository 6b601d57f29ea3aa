// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Paint formats a text that shows a state, for example with a colour.
type Paint func(s State, text string) string

// Plain is the Paint that changes nothing.
func Plain(_ State, text string) string { return text }

// Text returns the result for readers: the first broken link with its cause and the command against it, then all links.
// Lines are wrapped at a width, except commands, which users copy; 0 wraps none.
func (r *Result) Text(paint Paint, width int) string {
	var b strings.Builder
	state, answer := OK, "reachable, as far as the cluster shows"
	if slices.ContainsFunc(r.Links, func(l Link) bool { return l.Name == LinkProbe && l.State == OK }) {
		answer = "reachable from this machine"
	}
	if len(r.Families) > 0 {
		answer = familiesText(r.Families)
	}
	if n := r.warnings(); n > 0 {
		state, answer = Warning, fmt.Sprintf("%s, with %s", answer, world.Count(n, "warning"))
	}
	switch {
	case r.Reachable == Yes:
	case len(r.Families) > 0:
		state, answer = Broken, familiesText(r.Families)
	case r.Reachable == No:
		state, answer = Broken, "not reachable"
	case r.Reachable == Maybe:
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
			l.Reason), Wrap(l.Message, 2, width))
		if l.Command != "" {
			fmt.Fprintf(&b, "  %s\n", advice(l.Command))
		}
	}
	names, objects := 0, 0
	lines := r.lines()
	for _, l := range lines {
		names, objects = max(names, len(l.Name)), max(objects, len(l.Object))
	}
	indent := 2 + states + 1 + names + 2 + objects + 2
	b.WriteString("\n")
	for _, l := range lines {
		message := l.Message
		switch {
		case l.first:
			message = l.Reason + ", see above"
		case l.Reason != "":
			message = l.Reason + ": " + message
		}
		fmt.Fprintf(&b, "  %s %-*s  %-*s  %s\n", paint(l.State, fmt.Sprintf("%-*s", states, l.State)), names, l.Name, objects,
			l.Object, Wrap(message, indent, width))
		if l.State == Warning && l.Command != "" {
			fmt.Fprintf(&b, "%*s%s\n", indent, "", advice(l.Command))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", Wrap("note: "+note, 0, width))
	}
	return b.String()
}

// warnings counts what makes a Service reachable in part only, or soon no longer.
func (r *Result) warnings() (n int) {
	for _, l := range r.lines() {
		if l.State == Warning {
			n++
		}
	}
	return n
}

// states is the length of the longest state, "unknown" or "warning".
const states = 7

// line is a line of the text: a link, or links that differ in the address of the Service only. first means that it is
// the first broken one.
type line struct {
	Link
	first bool
}

// lines returns the links, merged where those of several addresses are equal.
func (r *Result) lines() (lines []line) {
	at, last := map[Link]int{}, map[int]string{} // the lines by what they are about, and the last address of each
	for i := range r.Links {
		l := &r.Links[i]
		about := slices.IndexFunc(r.Addresses, func(a string) bool { return named(l.Object, a) || named(l.Message, a) })
		key := *l
		if about >= 0 {
			key.Object, key.Message = replaced(l.Object, r.Addresses[about], ""), replaced(l.Message, r.Addresses[about], "")
			key.Command = ""
		}
		have, found := at[key]
		if !found {
			have = len(lines)
			at[key] = have
			lines = append(lines, line{Link: *l})
		}
		same := &lines[have]
		same.first = same.first || l == r.FirstBroken
		if found && about >= 0 { // Without an address, as a shard that has both, the link is the same.
			before, both := last[have], last[have]+", "+r.Addresses[about]
			same.Object, same.Message = replaced(same.Object, before, both), replaced(same.Message, before, both)
		}
		if about >= 0 {
			last[have] = r.Addresses[about]
		}
	}
	return lines
}

func isBoundary(r rune) bool { return r == ' ' || r == ',' || r == ';' }

// named reports whether a text contains an address as a word.
func named(text, address string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, isBoundary), func(word string) bool {
		_, ok := cutAddress(word, address)
		return ok
	})
}

// cutAddress returns the colon that may follow an address, and whether a word is the address.
func cutAddress(word, address string) (colon string, ok bool) {
	colon, ok = strings.CutPrefix(word, address)
	return colon, ok && (colon == "" || colon == ":")
}

// replaced returns a text in which other stands for the word that is an address.
func replaced(text, address, other string) string {
	var b strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, isBoundary)
		switch {
		case end < 0:
			end = len(text)
		case end == 0:
			end = 1
		}
		word := text[:end]
		if colon, ok := cutAddress(word, address); ok {
			word = other + colon
		}
		b.WriteString(word)
		text = text[end:]
	}
	return b.String()
}

// Wrap breaks a text between words into lines up to a width; 0 is no limit. Lines after the first begin with indent
// spaces.
func Wrap(text string, indent, width int) string {
	const least = 30 // columns for the text
	room := max(width-indent, least)
	if width == 0 || utf8.RuneCountInString(text) <= room {
		return text
	}
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > room:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
