// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
)

// marker is in all text of others that FuzzForeignText writes to objects.
const marker = "reboot"

// Whatever one field of an object contains, a shell takes it for data, and a terminal shows it as it is.
func FuzzForeignText(f *testing.F) {
	for _, text := range []string{"", "\x1b[2J\u009b\u202e\n  to mend it: "} {
		f.Add(text)
	}
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		f.Fatal(err)
	}
	var scenarios []*scenario
	for _, pattern := range []string{"testdata/*.txtar", "testdata/overview/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, file := range files {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				f.Fatal(err)
			}
			s, err := read(base, archive)
			if err != nil {
				f.Fatal(err)
			}
			for range passes {
				s.pass()
			}
			if err := s.lead(); err != nil {
				f.Fatal(err)
			}
			s.deny()
			scenarios = append(scenarios, s)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, s := range scenarios {
			// Most objects are in all scenarios: each scenario changes another tenth of its texts.
			const share = 10
			forEachText(reflect.ValueOf(s.Objects), func(was string, set func(string)) {
				if i++; i%share != 0 {
					return
				}
				defer set(was)
				set(was + "; " + text + marker) // without the semicolon, a plain word needs no quotes
				checkOutput(t, s)
			})
		}
	})
}

// checkOutput checks what an explanation and an overview print.
func checkOutput(t *testing.T, s *scenario) {
	t.Helper()
	result, overview := Explain(s.Objects, s.question), Summarize(s.Objects, s.question.Now)
	var commands []string
	for _, l := range result.Links {
		commands = append(commands, l.Command)
	}
	for _, f := range overview.Findings {
		commands = append(commands, f.Command)
	}
	for _, c := range commands {
		if strings.Contains(unquoted(c), marker) {
			t.Fatalf("text of others is not quoted in the command %q", c)
		}
	}
	data, err := json.Marshal([]any{overview, Routes(s.Objects, s.question.Now)})
	if err != nil {
		t.Fatal(err)
	}
	var texts any
	if err := json.Unmarshal(data, &texts); err != nil {
		t.Fatal(err)
	}
	forEachString(texts, func(text string) {
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }); i >= 0 {
			t.Fatalf("%q has a control character", text)
		}
	})
	control := func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }
	if text := result.Text(Plain, 0); strings.ContainsFunc(text, control) ||
		strings.Count(text, "to mend it: ")-strings.Count(text, `\u000a  to mend it: `) > len(result.Links) {
		t.Fatalf("a control character, or a command of others, in %q", text)
	}
}

// unquoted returns the parts of a command that are outside of single quotes: all of it if a quote is not closed.
func unquoted(command string) string {
	parts := strings.Split(strings.ReplaceAll(command, `'\''`, ""), "'")
	if len(parts)%2 == 0 {
		return command
	}
	var out strings.Builder
	for i, part := range parts {
		if i%2 == 0 {
			out.WriteString(part)
		}
	}
	return out.String()
}

// forEachText calls visit with each string of the objects that others choose freely, all but names and namespaces, and
// with a function that changes it.
func forEachText(v reflect.Value, visit func(text string, set func(string))) {
	switch v.Kind() {
	case reflect.String:
		visit(v.String(), v.SetString)
	case reflect.Pointer:
		if !v.IsNil() {
			forEachText(v.Elem(), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case !f.IsExported(), v.Type() == reflect.TypeFor[objects.Objects]() && f.Name == "Unread":
			case v.Type() == reflect.TypeFor[metav1.ObjectMeta]() && (f.Name == "Name" || f.Name == "Namespace"):
			default:
				forEachText(v.Field(i), visit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			forEachText(v.Index(i), visit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if v.Type().Elem().Kind() == reflect.String {
				visit(v.MapIndex(key).String(), func(text string) {
					v.SetMapIndex(key, reflect.ValueOf(text).Convert(v.Type().Elem()))
				})
			}
		}
	default: // numbers and the like
	}
}

func forEachString(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, e := range v {
			forEachString(e, visit)
		}
	case map[string]any:
		for _, e := range v {
			forEachString(e, visit)
		}
	}
}
