// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

// The site of docs builds without a warning, has every page in its navigation, and none of its links is dead.
func TestSite(t *testing.T) {
	site := buildSite(t)
	if len(site.pages) < 10 {
		t.Errorf("pages of the site: %d, want at least 10: is docs where mkdocs looks?", len(site.pages))
	}
	for name, page := range site.pages {
		for _, link := range page.links {
			if err := site.resolve(name, link); err != "" {
				t.Errorf("%s: link %s: %s", name, link, err)
			}
		}
		for _, text := range page.paragraphs {
			if regexp.MustCompile(`(?m)^(- |\d+\. |\| )`).MatchString(text) {
				t.Errorf("%s: a list or table without an empty line before it is shown as text: %s", name, text)
			}
		}
		for _, resource := range page.resources {
			if u, err := url.Parse(resource); err != nil || u.Host != "" {
				t.Errorf("%s: %s is loaded from another host: %v", name, resource, err)
			}
		}
	}
}

// site is a built site: its HTML pages by their paths, and the paths of all its files.
type site struct {
	pages map[string]sitePage
	files []string
}

// sitePage is what the test needs of an HTML page.
type sitePage struct {
	anchors    []string // values of id
	links      []string // targets of <a>
	resources  []string // what a browser loads to show the page
	paragraphs []string // texts of <p>
}

func buildSite(t *testing.T) site {
	t.Helper()
	contract.Test(t, "mkdocs")
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "mkdocs", "build", "--strict", "--config-file",
		root+"/contrib/mkdocs.yml", "--site-dir", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("mkdocs: %v\n%s", err, out)
	}
	if strings.Contains(string(out), `not included in the "nav"`) {
		t.Errorf("pages without navigation:\n%s", out)
	}
	s := site{pages: map[string]sitePage{}}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		s.files = append(s.files, name)
		if path.Ext(name) != ".html" || name == "404.html" { // its links are absolute: it is served for any path
			return nil
		}
		text, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer func() { _ = text.Close() }()
		tree, err := html.Parse(text)
		if err != nil {
			return err
		}
		s.pages[name] = readPage(tree)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readPage(tree *html.Node) (page sitePage) {
	for node := range tree.Descendants() {
		if node.Data == "p" {
			page.paragraphs = append(page.paragraphs, textOf(node))
		}
		for _, attribute := range node.Attr {
			switch {
			case attribute.Key == "id":
				page.anchors = append(page.anchors, attribute.Val)
			case attribute.Key == "href" && node.Data == "a":
				page.links = append(page.links, attribute.Val)
			case attribute.Key == "src", attribute.Key == "href" && node.Data == "link":
				page.resources = append(page.resources, attribute.Val)
			}
		}
	}
	return page
}

func textOf(node *html.Node) string {
	text := ""
	for child := range node.Descendants() {
		if child.Type == html.TextNode {
			text += child.Data
		}
	}
	return text
}

// resolve returns why a link of a page leads nowhere, or an empty string. Links to other hosts are not followed.
func (s site) resolve(from, link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return ""
	}
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	if !slices.Contains(s.files, target) {
		return "no such file"
	}
	if page, ok := s.pages[target]; ok && u.Fragment != "" && !slices.Contains(page.anchors, u.Fragment) {
		return "no such anchor"
	}
	return ""
}

// The pages beside docs link to files that exist. Their anchors are those of the site.
func TestLinksBesideDocs(t *testing.T) {
	site := buildSite(t)
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		links := regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(read(t, page), -1)
		if len(links) == 0 {
			t.Errorf("%s: no link: is it where this test looks?", page)
		}
		for _, m := range links {
			u, err := url.Parse(m[1])
			if err != nil || u.Host != "" {
				continue // not in this repository
			}
			if _, err := os.Stat(filepath.Join(root, u.Path)); err != nil {
				t.Errorf("%s: link %s: %v", page, m[1], err)
			}
			if name, ok := strings.CutPrefix(u.Path, "docs/"); ok && u.Fragment != "" {
				if dead := site.resolve("index.html", strings.TrimSuffix(name, ".md")+".html#"+u.Fragment); dead != "" {
					t.Errorf("%s: link %s: %s", page, m[1], dead)
				}
			}
		}
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	s := site{
		files: []string{"a.html", "adr/b.html", "picture.svg"},
		pages: map[string]sitePage{"a.html": {anchors: []string{"here"}}, "adr/b.html": {}},
	}
	for link, want := range map[string]string{
		"../a.html": "", "../a.html#here": "", "b.html": "", "": "", "../picture.svg": "", "https://example.com/x": "",
		"../a.html#there": "no such anchor", "#here": "no such anchor", "a.html": "no such file", "../x.svg": "no such file",
	} {
		if got := s.resolve("adr/b.html", link); got != want {
			t.Errorf("link %q: %q, want %q", link, got, want)
		}
	}
}
