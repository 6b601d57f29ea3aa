// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Severity is how much a finding matters to the administrator.
type Severity int

// Severities, the most important first.
const (
	// Error: the object or setting has no equivalent, and the object is not converted; or the API server or the controller
	// would not accept it because of an object of the cluster.
	Error Severity = iota
	// Warning: the object is converted, but behaves differently or needs another step.
	Warning
	// Note: a difference that usually does not matter.
	Note
)

// String returns the name of the severity in lower case.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	case Note:
		return "note"
	}
	return fmt.Sprintf("severity %d", int(s))
}

// Finding describes a setting of MetalLB that has no exact equivalent, and what to do instead.
type Finding struct {
	Severity Severity
	// Object is KIND/NAME of an object of the input, NAMESPACE/NAME for Services.
	Object string
	// Field is the path of a field, or empty if the finding is about the object as a whole.
	Field string
	// Message contains the value of the field.
	Message string
}

// String returns the finding in one line. Values of the input may contain line breaks, which must not end a comment of
// YAML.
func (f Finding) String() string {
	text := f.Severity.String() + ": "
	if f.Object != "" {
		text += f.Object + ": "
	}
	if f.Field != "" {
		text += f.Field + ": "
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, text+f.Message)
}

// findings collects findings. Findings about one object stay in the order in which they were found.
type findings []Finding

func (fs *findings) add(s Severity, object, field, format string, args ...any) {
	*fs = append(*fs, Finding{s, object, field, fmt.Sprintf(format, args...)})
}

// sorted returns the findings, the most important first.
func (fs findings) sorted() []Finding {
	out := slices.Clone(fs)
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return out
}
