// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

// Writer writes text without characters that are not graphic, except line feeds and tabs. Each Write must contain whole
// characters.
type Writer struct {
	out io.Writer
	// mark precedes the control sequences of this program. It is random, so that no text of others contains it.
	mark string
}

// NewWriter returns a writer to out. With sequences, it writes the sequences of Sequence, too.
func NewWriter(out io.Writer, sequences bool) *Writer {
	w := &Writer{out: out}
	if sequences {
		w.mark = rand.Text()
	}
	return w
}

// HasSequences reports whether the writer writes control sequences.
func (w *Writer) HasSequences() bool { return w.mark != "" }

// Sequence returns a text for which the writer writes a control sequence (ECMA-48, 5.4), given without its first
// character ESC. It is empty if the writer writes none.
func (w *Writer) Sequence(sequence string) string {
	if w.mark == "" {
		return ""
	}
	return w.mark + sequence
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	text := escape(string(p), "\n\t")
	if w.mark != "" {
		text = strings.ReplaceAll(text, w.mark, "\x1b")
	}
	if _, err := io.WriteString(w.out, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetLog makes klog write messages of at most a verbosity to a Writer. klog writes strings of several lines as they
// are.
func SetLog(out io.Writer, verbosity int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for _, f := range [][2]string{{"v", strconv.Itoa(verbosity)}, {"logtostderr", "false"}, {"one_output", "true"},
		{"stderrthreshold", "FATAL"}} {
		if err := flags.Set(f[0], f[1]); err != nil {
			return fmt.Errorf("set %s=%s of the log: %w", f[0], f[1], err)
		}
	}
	klog.SetOutput(NewWriter(out, false))
	return nil
}
