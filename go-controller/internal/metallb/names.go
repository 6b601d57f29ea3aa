// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxName is the length of names that are made from others. The API server admits longer ones.
const maxName = 63

var (
	notInName = regexp.MustCompile(`[^a-z0-9.]+`)
	dots      = regexp.MustCompile(`-*\.[-.]*`)
)

// objectName returns a name in the form that Kubernetes requires (RFC 1123): lower-case letters and digits, with dashes
// and dots between them. It is empty if the name has neither letters nor digits of ASCII.
func objectName(name string) string {
	valid := dots.ReplaceAllString(notInName.ReplaceAllString(strings.ToLower(name), "-"), ".")
	valid = strings.Trim(valid, "-.")
	return strings.TrimRight(valid[:min(len(valid), maxName)], "-.")
}

func isObjectName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// names gives the objects of a list in a ConfigMap names that Kubernetes accepts. Names that are valid stay, and no
// other one becomes equal to them.
type names struct {
	// valid are the new names by the old ones.
	valid map[string]string
	in    string
	fs    *findings
}

func newNames(in string, fs *findings) *names {
	return &names{valid: map[string]string{}, in: in, fs: fs}
}

// add gives names to the objects of a list, whose key in the ConfigMap is list. unnamed is for those that have no
// letter.
func (n *names) add(list, unnamed string, all []string) {
	taken := map[string]bool{}
	for _, name := range all {
		if isObjectName(name) {
			taken[name], n.valid[name] = true, name
		}
	}
	for _, name := range all {
		if n.valid[name] != "" {
			continue
		}
		base := cmp.Or(objectName(name), unnamed)
		valid := base
		for i := 2; taken[valid]; i++ {
			valid = fmt.Sprintf("%s-%d", base, i)
		}
		taken[valid], n.valid[name] = true, valid
		n.fs.add(Warning, n.in, list, "%s is no name of an object: it is named %s", name, valid)
	}
}
