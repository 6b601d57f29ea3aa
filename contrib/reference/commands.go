// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// commandsPage describes the commands of the programs in a directory by what they print for --help.
func commandsPage(dir string) (string, error) {
	var page strings.Builder
	page.WriteString("# Commands and flags\n\n" + generated + `
` + "`ovnkube-slb`" + ` runs in Pods, [kubectl slb](../kubectl-slb.md) is for administrators. This is what they print for
` + "`--help`" + `. The name of an environment variable with the same meaning is in square brackets.
`)
	for _, program := range []string{"ovnkube-slb", "kubectl-slb"} {
		top, err := help(dir, program)
		if err != nil {
			return "", err
		}
		names := regexp.MustCompile(`(?m)^   ([a-z]+)  `).FindAllStringSubmatch(top["COMMANDS"], -1)
		for _, name := range names {
			text, err := help(dir, program, name[1])
			if err != nil {
				return "", err
			}
			page.WriteString("\n" + commandSection(text))
		}
	}
	return page.String(), nil
}

// help returns the sections of the output of --help by their titles.
func help(dir, program string, command ...string) (map[string]string, error) {
	out, err := exec.Command(filepath.Join(dir, program), append(command, "--help")...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s --help: %w", program, strings.Join(command, " "), err)
	}
	sections := map[string]string{}
	title := ""
	for _, line := range strings.Split(string(out), "\n") {
		if m := regexp.MustCompile(`^([A-Z ]+):$`).FindStringSubmatch(line); m != nil {
			title = m[1]
			continue
		}
		sections[title] += line + "\n"
	}
	for _, title := range []string{"NAME", "USAGE"} {
		if sections[title] == "" {
			return nil, fmt.Errorf("%s %s --help: no section %s", program, strings.Join(command, " "), title)
		}
	}
	return sections, nil
}

func commandSection(help map[string]string) string {
	name, usage, _ := strings.Cut(strings.TrimSpace(help["NAME"]), " - ")
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n%s\n\n`%s`\n", name, wrap(strings.ToUpper(usage[:1])+usage[1:]+"."),
		strings.TrimSpace(help["USAGE"]))
	if text := strings.Trim(help["DESCRIPTION"], "\n"); text != "" {
		for _, paragraph := range regexp.MustCompile(`\n\s*\n`).Split(text, -1) {
			out.WriteString("\n" + described(paragraph))
		}
	}
	var rows [][]string
	flush := func() {
		if len(rows) > 0 {
			out.WriteString("\n" + table([]string{"Flag", "Meaning"}, rows))
		}
		rows = nil
	}
	for _, line := range strings.Split(help["OPTIONS"], "\n") {
		if m := regexp.MustCompile(`^   (-.*?)  +(.*)$`).FindStringSubmatch(line); m != nil {
			rows = append(rows, flagRow(m[1], m[2]))
		} else if title := strings.TrimSpace(line); title != "" {
			flush()
			fmt.Fprintf(&out, "\n**%s**\n", strings.TrimSuffix(title, ":"))
		}
	}
	flush()
	return out.String()
}

// flagRow returns the row of a flag. A flag that may be repeated is printed as "--flag VALUE [ --flag VALUE ]".
func flagRow(flag, usage string) []string {
	if once, _, repeated := strings.Cut(flag, " [ "); repeated {
		flag, usage = once, usage+" (may be repeated)"
	}
	return []string{"`" + flag + "`", cell(usage)}
}

// described returns a paragraph of a description. Lines with a deeper indentation are commands.
func described(paragraph string) string {
	var text, commands []string
	for _, line := range strings.Split(paragraph, "\n") {
		if strings.HasPrefix(line, "     ") { // 3 columns for all lines, and 2 more
			commands = append(commands, "- `"+strings.TrimSpace(line)+"`")
		} else {
			text = append(text, line)
		}
	}
	out := wrap(strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(strings.Join(text, " ")))
	if len(commands) > 0 {
		if out != "" {
			out += "\n\n"
		}
		out += strings.Join(commands, "\n")
	}
	return out + "\n"
}
