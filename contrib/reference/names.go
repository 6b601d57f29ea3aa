// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// constant is a constant of the API with its doc comment.
type constant struct{ name, value, doc string }

// group is a declaration of constants. Its doc comment describes them together.
type group struct {
	doc       string
	constants []constant
}

// namesPage describes the string constants of Go files. Each declaration of several constants becomes a section, whose
// title is the first sentence of its doc comment.
func namesPage(files ...string) (string, error) {
	var groups []group
	for _, file := range files {
		some, err := readConstants(file)
		if err != nil {
			return "", err
		}
		groups = append(groups, some...)
	}
	values := map[string]string{}
	for _, g := range groups {
		for _, c := range g.constants {
			values[c.name] = c.value
		}
	}
	var page, others strings.Builder
	page.WriteString("# Names and reasons\n\n" + generated + `
Annotations, conditions with their reasons, and Events. [Troubleshooting](../troubleshooting.md) has what to do about
each reason.
`)
	var single [][]string
	for _, g := range groups {
		if g.doc == "" {
			single = append(single, row(g.constants[0], values, false))
			continue
		}
		title, rest, _ := strings.Cut(withValues(g.doc, values), ".\n\n")
		status := slices.ContainsFunc(g.constants, func(c constant) bool { return statusOf().MatchString(c.doc) })
		var rows [][]string
		for _, c := range g.constants {
			rows = append(rows, row(c, values, status))
		}
		header := []string{"Name", "Meaning"}
		if status {
			header = []string{"Reason", "Status", "Meaning"}
		}
		fmt.Fprintf(&page, "\n## %s\n", title)
		if rest != "" {
			page.WriteString(wrap(rest) + "\n\n")
		}
		page.WriteString(table(header, rows))
	}
	others.WriteString("\n## Other names\n" + table([]string{"Name", "Meaning"}, single))
	return page.String() + others.String(), nil
}

func readConstants(file string) (groups []group, err error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range tree.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		g := group{doc: firstSentenceApart(decl.Doc.Text())}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec) // const declarations have no other
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				return nil, fmt.Errorf("%s: %s is no literal", file, spec.Names[0])
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, spec.Names[0], err)
			}
			doc := spec.Doc.Text()
			if !decl.Lparen.IsValid() {
				doc, g.doc = decl.Doc.Text(), ""
			}
			g.constants = append(g.constants, constant{spec.Names[0].Name, value, doc})
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// firstSentenceApart returns a comment whose first sentence is a paragraph of its own.
func firstSentenceApart(doc string) string {
	doc = strings.Join(strings.Fields(doc), " ")
	first, rest, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(first, ".") + ".\n\n" + rest
}

// withValues replaces names of constants by their values.
func withValues(text string, values map[string]string) string {
	return regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`).ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := values[name]; ok {
			return "`" + value + "`"
		}
		return name
	})
}

// statusOf matches the doc comment of a reason, with the status of its condition.
func statusOf() *regexp.Regexp { return regexp.MustCompile(`^\w+ \(([^)]*)\)`) }

// row returns the row of a constant: "NAME (STATUS): MEANING", "NAME, on KIND: MEANING" or "NAME MEANING".
func row(c constant, values map[string]string, status bool) []string {
	text := strings.TrimPrefix(strings.Join(strings.Fields(c.doc), " "), c.name)
	value := ""
	if m := statusOf().FindStringSubmatch(c.doc); m != nil && status {
		value, text = m[1], strings.TrimPrefix(text, " ("+m[1]+")")
	}
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, ":"), ","))
	text = cell(withValues(text, values))
	if status {
		return []string{"`" + c.value + "`", value, text}
	}
	return []string{"`" + c.value + "`", text}
}
