// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is a code block of a page.
type block struct {
	file string
	line int    // line of its first line of text, from 1
	info string // info string of the fence; empty for an indented block
	text string // without the indentation of the block
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

func itemStart() *regexp.Regexp { return regexp.MustCompile(`^( {0,3}(?:[-*+]|\d+[.)]) +)\S`) }

// blocks returns the code blocks of a page according to CommonMark 0.31 (sections 4.4, 4.5 and 5.2), as far as our
// pages need it: lists are not nested in block quotes, and continuation text of a list item has the indentation of the
// item's first line.
func blocks(file, page string) (out []block, err error) {
	item, margin, paragraph := itemStart(), 0, false
	var open *block // the indented block of the previous line
	lines := strings.Split(strings.ReplaceAll(page, "\t", "    "), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.TrimSpace(line) == "" {
			paragraph = false
			if open != nil {
				open.text += "\n"
			}
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if indent < margin && !paragraph {
			margin = 0 // The list ends.
		}
		if !paragraph && indent >= margin+4 {
			if open == nil {
				out = append(out, block{file: file, line: i + 1})
				open = &out[len(out)-1]
			}
			open.text += line[margin+4:] + "\n"
			continue
		}
		open = nil
		if fence := regexp.MustCompile("^ *(```+|~~~+) *([^`]*)$").FindStringSubmatch(line); fence != nil {
			b := block{file: file, line: i + 2, info: strings.TrimSpace(fence[2])}
			for i++; i < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i]), fence[1]); i++ {
				b.text += strings.TrimPrefix(lines[i], strings.Repeat(" ", indent)) + "\n"
			}
			if i == len(lines) {
				return nil, fmt.Errorf("%s: the fence does not end", b)
			}
			out, paragraph = append(out, b), false
			continue
		}
		if start := item.FindStringSubmatch(line); start != nil {
			margin = len(start[1])
		}
		paragraph = !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "|")
	}
	for i := range out {
		out[i].text = strings.TrimRight(out[i].text, "\n") + "\n"
	}
	return out, nil
}

// call is one command of a block.
type call struct {
	line int // in its page
	args []string
}

// programs returns the commands of a block: the first word of every line, pipe and list of the shell. It ignores
// here-document bodies and comments.
func (b block) programs() (out []call) {
	quoted := regexp.MustCompile(`'[^']*'|"[^"]*"`)
	comment := regexp.MustCompile(`(^|\s)#.*$`)
	heredoc := regexp.MustCompile(`<<-?\s*["']?(\w+)`)
	lines := strings.Split(b.text, "\n")
	for i := 0; i < len(lines); i++ {
		start, line := i, lines[i]
		for ; strings.HasSuffix(line, `\`) && i+1 < len(lines); i++ {
			line = strings.TrimSuffix(line, `\`) + lines[i+1]
		}
		if m := heredoc.FindStringSubmatch(line); m != nil {
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != m[1]; i++ {
				continue // input of the command
			}
		}
		line = comment.ReplaceAllString(quoted.ReplaceAllString(line, `''`), "")
		for _, part := range regexp.MustCompile(`\|\|?|&&?|;`).Split(line, -1) {
			args := strings.Fields(part)
			for len(args) > 0 && regexp.MustCompile(`^\w+=`).MatchString(args[0]) {
				args = args[1:] // an environment variable of the command
			}
			if len(args) > 0 {
				out = append(out, call{line: b.line + start, args: args})
			}
		}
	}
	return out
}

// kind is the way to run a block.
type kind string

const (
	kubectl kind = "kubectl" // run in bash
	targets kind = "make"    // targets of make
	yaml    kind = "yaml"    // manifests
	scrape  kind = "scrape"  // a scrape configuration of Prometheus
	picture kind = "text"    // not run: a picture, or what kubectl or kubectl slb prints
)

// kind returns how to run the block, or an error that names the line without a runner.
func (b block) kind() (kind, error) {
	switch b.info {
	case "yaml":
		if strings.HasPrefix(b.text, "scrape_configs:") {
			return scrape, nil
		}
		return yaml, nil
	case "text":
		command := regexp.MustCompile(`^\s*(\$ |(sudo|kubectl|make|ovn-\w+|ovs-\w+|ovsdb-\w+|ovnkube-slb|curl|go|git|docker|podman) )`)
		for i, line := range strings.Split(b.text, "\n") {
			if command.MatchString(line) {
				return "", fmt.Errorf("%s:%d: a command in a block that is marked text: %s", b.file, b.line+i,
					strings.TrimSpace(line))
			}
		}
		columns := regexp.MustCompile(`^[A-Z()-]+( +[A-Z()-]+)+ *\n`)
		// What kubectl slb plan, drain, move and explain print.
		printed := regexp.MustCompile(`^(loses|changes|updates|moves|\w+/\w+ \(.*\):) `)
		if !strings.ContainsAny(b.text, "─│▶◀▼") && !strings.Contains(b.text, "->") && !columns.MatchString(b.text) &&
			!printed.MatchString(b.text) {
			return "", fmt.Errorf("%s: a block marked text without a line or an arrow is no picture, and without the names "+
				"of columns no table of kubectl", b)
		}
		return picture, nil
	case "", "sh", "bash", "shell":
	default:
		return "", fmt.Errorf("%s: a block of language %q: want sh, yaml or text", b, b.info)
	}
	found := kind("")
	for _, p := range b.programs() {
		name := kind(p.args[0])
		if name != kubectl && name != targets {
			return "", fmt.Errorf("%s:%d: %s: no runner knows this command; package test/docs knows kubectl and make", b.file,
				p.line, name)
		}
		if found != "" && found != name {
			return "", fmt.Errorf("%s:%d: kubectl and make in one block", b.file, p.line)
		}
		found = name
	}
	if found == "" {
		return "", fmt.Errorf("%s: no command in a block that is not marked text", b)
	}
	return found, nil
}

const page = "# Title\n\n    make a b # one\n    make c\n\ntext\n    not code, it continues a paragraph\n\n" +
	"- an item\n\n    continues the item\n\n      kubectl get in-a-list\n\nends the list\n\n" +
	"```text\nn1 ── n2\n```\n\n```yaml\nkind: Pod\n```\n\n```\nkubectl apply -f - <<EOF\nkind: Pod\nmake: this is no command\nEOF\n" +
	"A=b kubectl get pods | \\\n  kubectl get -f - && kubectl 'x; rm'\n```\n"

func TestBlocksOfAPage(t *testing.T) {
	found, err := blocks("page.md", page)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range found {
		k, err := b.kind()
		got = append(got, fmt.Sprintf("%s %s %v", b, k, err))
		for _, p := range b.programs() {
			if k == kubectl || k == targets {
				got = append(got, fmt.Sprintf("%d %s", p.line, strings.Join(p.args, " ")))
			}
		}
	}
	want := []string{
		"page.md:3 make <nil>", "3 make a b", "4 make c",
		"page.md:13 kubectl <nil>", "13 kubectl get in-a-list",
		"page.md:18 text <nil>", "page.md:22 yaml <nil>",
		"page.md:26 kubectl <nil>", "26 kubectl apply -f - <<EOF", "30 kubectl get pods", "30 kubectl get -f -",
		"30 kubectl ''",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBlockWithoutRunnerIsReported(t *testing.T) {
	for text, want := range map[string]string{
		"    kubectl get pods\n    frobnicate -x\n":             "page.md:2: frobnicate: no runner knows this command",
		"    kubectl get pods | frobnicate\n":                   "page.md:1: frobnicate: no runner knows this command",
		"    kubectl get pods && \\\n    kubectl get x; frob\n": "page.md:1: frob: no runner knows this command",
		"```sh\nkubectl get pods\nmake test\n```\n":             "page.md:3: kubectl and make in one block",
		"```console\n$ kubectl get pods\n```\n":                 `page.md:2: a block of language "console"`,
		"```text\na ── b\nkubectl get pods\n```\n": "page.md:3: a command in a block that is marked text: " +
			"kubectl get pods",
		"```text\nscrape_configs: []\n```\n": "page.md:2: a block marked text without a line or an " +
			"arrow",
		"```\na picture\n```\n":                    "page.md:2: a: no runner knows this command",
		"- item\n\n  ```sh\n  frobnicate\n  ```\n": "page.md:4: frobnicate: no runner knows this command",
		"```\n# nothing\n```\n": "page.md:2: no command in a block that is not marked " +
			"text",
		"```text\nNAME   AGE\nkubectl get pods\n```\n":              "page.md:3: a command in a block that is marked text",
		"text\n\n1. item\n   goes on\n\n       frobnicate\n\nend\n": "page.md:6: frobnicate: no runner knows this command",
	} {
		found, err := blocks("page.md", text)
		if err != nil || len(found) != 1 {
			t.Errorf("%q has blocks %v: %v", text, found, err)
			continue
		}
		if _, err := found[0].kind(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := blocks("page.md", "text\n\n```\nmake test\n"); err == nil || !strings.Contains(err.Error(), "page.md:4: the fence does not end") {
		t.Errorf("a fence without end: %v", err)
	}
}
