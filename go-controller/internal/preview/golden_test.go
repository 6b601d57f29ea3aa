// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// TestGolden edits the cluster of base.yaml. The files of an archive are
//
//	absent          lines "KIND/NAME": objects of base.yaml that do not exist
//	manifests.yaml  objects that are added to those of base.yaml
//	claims.yaml     IPAddressClaims and IPAddresses
//	services        "NUMBER FIRST-ADDRESS": Services many/01 and so on, with consecutive addresses
//	edit.yaml       the objects after the edit
//	no-secrets      lines "NAMESPACE/NAME": Secrets that BGPPeers refer to and that do not exist
//	delete          lines "KIND/NAME" or "KIND/NAMESPACE/NAME": objects that the edit deletes
//	wide            (empty) all changes are shown
//	moving          (empty) only what is lost or moves is shown, as by drain
//	moves           lines "NAMESPACE/SERVICE NODE": requests to move Services
//	want            the changes, and the new Services that nothing would announce
func TestGolden(t *testing.T) {
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden.RunArchives(t, "testdata/*.txtar", func(archive *txtar.Archive) (string, error) {
		before := &objects.Objects{}
		if _, err := before.Set(base); err != nil {
			return "", err
		}
		var after *objects.Objects
		var edited *objects.Edited
		now, all, moving := time.Unix(1767225700, 0), false, false
		for _, f := range archive.Files {
			switch f.Name {
			case "absent":
				err = deleteAll(before, f.Data)
			case "manifests.yaml":
				_, err = before.Set(f.Data)
			case "claims.yaml":
				err = setClaims(before, f.Data)
			case "services":
				_, err = before.Set(many(string(f.Data)))
			case "wide":
				all = true
			case "moving":
				moving = true
			case "edit.yaml":
				after = before.Clone()
				edited, err = after.Edit(f.Data, "shop", now, crd.Check)
			case "no-secrets":
				before.AbsentSecrets = map[string]bool{}
				for name := range strings.FieldsSeq(string(f.Data)) {
					before.AbsentSecrets[name] = true
				}
				after.AbsentSecrets = before.AbsentSecrets
			case "delete":
				after = cmp.Or(after, before).Clone()
				err = deleteAll(after, f.Data)
			case "moves":
				return moves(before, string(f.Data), now), nil
			case "want":
			default:
				err = fmt.Errorf("unknown file %q", f.Name)
			}
			if err != nil {
				return "", err
			}
		}
		changes := Compare(before, after, now)
		if edited != nil {
			changes.Add(edited)
		}
		if moving {
			return changes.Moves().Text(all), nil
		}
		text := changes.Text(all) + fmt.Sprintf("unchanged: %d\n", changes.Unchanged)
		for _, s := range changes.Services {
			if s.Pending {
				text += "pending: " + s.Service + "\n"
			}
		}
		return text, nil
	})
}

func setClaims(o *objects.Objects, documents []byte) error {
	all, err := manifest.Parse(documents)
	var claims, addresses []*unstructured.Unstructured
	for _, u := range all {
		if u.GetKind() == "IPAddress" {
			addresses = append(addresses, u)
		} else {
			claims = append(claims, u)
		}
	}
	o.SetClaims(claims, addresses)
	return err
}

func deleteAll(o *objects.Objects, names []byte) error {
	for name := range strings.FieldsSeq(string(names)) {
		kind, object, _ := strings.Cut(name, "/")
		namespace, inNamespace, namespaced := strings.Cut(object, "/")
		if namespaced {
			object = inNamespace
		} else {
			namespace = ""
		}
		if !o.Delete(kind, namespace, object) {
			return fmt.Errorf("delete %s: there is no such object", name)
		}
	}
	return nil
}

func many(line string) []byte {
	const service = `
---
apiVersion: v1
kind: Service
metadata: {name: "%02[1]d", namespace: many, uid: "%[1]d", creationTimestamp: "2026-01-01T00:00:05Z"}
spec: {type: LoadBalancer, ipFamilies: [IPv4], selector: {app: x}, ports: [{name: http, port: 80, protocol: TCP}]}
status:
  loadBalancer: {ingress: [{ip: %[2]s}]}
  conditions: [{type: slb.k8s.ovn.org/Allocated, status: "True", reason: Allocated, message: %[2]s from pool public}]`
	var b bytes.Buffer
	b.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: many}")
	var n int
	var first string
	if _, err := fmt.Sscan(line, &n, &first); err != nil {
		panic(err)
	}
	a := netip.MustParseAddr(first)
	for i := range n {
		fmt.Fprintf(&b, service, i+1, a)
		a = a.Next()
	}
	return b.Bytes()
}

func moves(o *objects.Objects, lines string, now time.Time) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		namespace, name, _ := strings.Cut(words[0], "/")
		list, reason := Move(o, world.Key{Namespace: namespace, Name: name}, words[1], "id", now)
		fmt.Fprintf(&out, "%s to %s: %s\n", words[0], words[1], cmp.Or(reason, world.Count(len(list), "request")))
		for _, m := range list {
			fmt.Fprintf(&out, "%s: %s\n%s", m.Domain, m.Request, m.Text(false))
		}
	}
	return out.String()
}
