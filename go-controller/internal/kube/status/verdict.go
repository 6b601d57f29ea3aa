// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxMessageLength is the maximum length of the message of a condition or an Event. The API server accepts 32768 bytes
// in a condition and 1024 in an Event.
const maxMessageLength = 1024

// Verdict is the desired content of a condition.
type Verdict struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

func sameVerdict(a, b *Verdict) bool { return a == b || a != nil && b != nil && *a == *b }

// Set writes the verdict to a list of conditions and reports whether that changed it.
func (v Verdict) Set(conditions *[]metav1.Condition, kind string, now time.Time) bool {
	return meta.SetStatusCondition(conditions, v.condition(kind, 0, now))
}

func (v Verdict) condition(kind string, generation int64, now time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: v.Status, Reason: v.Reason, Message: Truncate(v.Message),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now)}
}

// Truncate returns a message that fits in a condition and in an Event, as one line without control characters: parts of
// it come from others, for example from annotations of Services and nodes.
func Truncate(message string) string {
	return convert.Truncate(printable.Line(strings.ReplaceAll(message, "\n", "; ")), maxMessageLength)
}

// Verdicts are conditions by their type.
type Verdicts map[string]Verdict

// set writes all verdicts, ordered by type, and reports whether that changed anything.
func (v Verdicts) set(conditions *[]metav1.Condition, generation int64, now time.Time) bool {
	changed := false
	for _, kind := range slices.Sorted(maps.Keys(v)) {
		changed = meta.SetStatusCondition(conditions, v[kind].condition(kind, generation, now)) || changed
	}
	return changed
}

// Accepted returns the verdict on an object with these problems, which prevent its use, and remarks, which do not.
func Accepted(problems, remarks []string) Verdict {
	switch {
	case len(problems) > 0:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonInvalid, strings.Join(problems, "; ")}
	case len(remarks) > 0:
		return Verdict{metav1.ConditionTrue, v1alpha1.ReasonPartlyUsable, strings.Join(remarks, "; ")}
	}
	return Verdict{metav1.ConditionTrue, v1alpha1.ReasonAccepted, "the object is valid"}
}

// OfFindings returns the verdict on an object with these findings. The reason is that of the first fatal
// finding, or of the first finding if none is fatal.
func OfFindings(list []world.Finding) Verdict {
	if len(list) == 0 {
		return Accepted(nil, nil)
	}
	first, status := list[0], metav1.ConditionTrue
	if i := slices.IndexFunc(list, func(f world.Finding) bool { return f.Fatal }); i >= 0 {
		first, status = list[i], metav1.ConditionFalse
	}
	messages := []string{first.Message}
	for _, f := range list {
		if f.Message != first.Message {
			messages = append(messages, f.Message)
		}
	}
	return Verdict{status, first.Reason, strings.Join(messages, "; ")}
}
