// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"k8s.io/klog/v2"
)

func TestLineEscapesWhatIsNotGraphic(t *testing.T) {
	for text, want := range map[string]string{
		"plain, äöü, 日本語 'quoted'": "plain, äöü, 日本語 'quoted'",
		"\x1b[2J":                  `\u001b[2J`,
		"a\nb\tc\rd":               `a\u000ab\u0009c\u000dd`,
		"\x7f\u0085\u009b31m":      `\u007f\u0085\u009b31m`,
		"\u202eevil\u2066\u200b":   `\u202eevil\u2066\u200b`,
		"\u2028\U000e0041":         `\u2028\udb40\udc41`,
		"invalid \xff\xfe UTF-8":   "invalid \ufffd\ufffd UTF-8",
		"the character \ufffd too": "the character \ufffd too",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestCleanReachesEachString(t *testing.T) {
	type inner struct{ Text string }
	type name string
	v := struct {
		Text    string
		Name    name
		List    []inner
		Pointer *inner
		Map     map[string]inner
		Any     any
		Number  int
		Absent  *inner
		hidden  string
	}{"\x1b", "\x1b", []inner{{"\x1b"}}, &inner{"\x1b"}, map[string]inner{"k": {"\x1b"}}, &inner{"\x1b"}, 1, nil, "\x1b"}
	Clean(&v)
	const want = `\u001b`
	for _, got := range []string{v.Text, string(v.Name), v.List[0].Text, v.Pointer.Text, v.Map["k"].Text,
		v.Any.(*inner).Text} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if v.hidden != "\x1b" {
		t.Errorf("the unexported field is %q", v.hidden)
	}
}

func TestWriterWritesOnlyItsOwnSequences(t *testing.T) {
	for _, sequences := range []bool{false, true} {
		var out bytes.Buffer
		w := NewWriter(&out, sequences)
		n, err := w.Write([]byte(w.Sequence("[31m") + "red\n\t\x1b[32m" + w.Sequence("[0m")))
		want := "red\n\t\\u001b[32m"
		if sequences {
			want = "\x1b[31m" + want + "\x1b[0m"
		}
		if err != nil || n == 0 || out.String() != want {
			t.Errorf("sequences %t: %q (%d, %v), want %q", sequences, out.String(), n, err, want)
		}
	}
}

func TestWriterKeepsTheMeaningOfJSON(t *testing.T) {
	const text = "a\x7f\u009b\u202e\U000e0041\n"
	var out bytes.Buffer
	if err := json.NewEncoder(NewWriter(&out, false)).Encode(text); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != text {
		t.Errorf("%q is read as %q (%v), want %q", out.String(), got, err, text)
	}
}

func TestLogHasNoControlCharacters(t *testing.T) {
	var out bytes.Buffer
	if err := SetLog(&out, 0); err != nil {
		t.Fatal(err)
	}
	klog.ErrorS(errors.New("first\n\x1b[2J"), "message \x1b[31m", "key", "value\n\x1b[0m")
	klog.Flush()
	if text := out.String(); !strings.Contains(text, "first") || strings.ContainsRune(text, '\x1b') {
		t.Errorf("the log is %q", text)
	}
}

// A POSIX shell reads each quoted word as the same word, or as the placeholder.
func FuzzQuote(f *testing.F) {
	for _, word := range []string{"web", "", "-n", "a b", "$(reboot)", "`x`", "it's", "a;b", "x\ny", "\x1b[2J", "~root", "#x",
		"a=b", "*", "{a,b}", "!!", "''", `\`, "\u202e"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		quoted := Quote(word)
		if strings.ContainsFunc(quoted, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Fatalf("%q is quoted as %q", word, quoted)
		}
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf '<%s>' "+quoted).Output()
		if got := string(out); err != nil || got != "<"+word+">" && got != "<"+placeholder+">" {
			t.Errorf("%q is quoted as %s, which a shell reads as %s (%v)", word, quoted, got, err)
		}
	})
}

func TestCommandQuotesValues(t *testing.T) {
	got := Command("kubectl -n %s edit service %s   # that of %s, %v", "shop", "a;b", "--x", 7)
	if want := "kubectl -n shop edit service 'a;b'   # that of UNKNOWN, 7"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
