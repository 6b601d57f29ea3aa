// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"gopkg.in/ini.v1"
)

// ownSection is our section of OVN-Kubernetes' configuration file. Unknown keys are ignored in other sections and an
// error in this one.
const ownSection = "serviceloadbalancers"

// applyFile sets flags from the configuration file that are set neither on the command line nor in the environment.
func applyFile(ctx *cli.Context, path string, all []setting) error {
	if path == "" {
		return nil
	}
	file, err := ini.LoadSources(ini.LoadOptions{IgnoreInlineComment: true}, path)
	if err != nil {
		return fmt.Errorf("--%s %q: %w", flagConfigFile, path, err)
	}
	if err := checkOwnSection(file, path); err != nil {
		return err
	}
	for _, s := range all {
		name := s.flag.Names()[0]
		if s.section == "" || ctx.IsSet(name) || !file.HasSection(s.section) || !file.Section(s.section).HasKey(s.key) {
			continue
		}
		value := strings.Trim(file.Section(s.section).Key(s.key).Value(), `"`)
		if err := ctx.Set(name, value); err != nil {
			return fmt.Errorf("--%s %q: [%s] %s = %q: %w", flagConfigFile, path, s.section, s.key, value, err)
		}
	}
	return nil
}

// checkOwnSection returns an error for a key in ownSection that no subcommand has.
func checkOwnSection(file *ini.File, path string) error {
	all := append(settings(&options{}), nodeSettings(&nodeOptions{})...)
	if !file.HasSection(ownSection) {
		return nil
	}
	for _, key := range file.Section(ownSection).Keys() {
		if !slices.ContainsFunc(all, func(s setting) bool { return s.section == ownSection && s.key == key.Name() }) {
			return fmt.Errorf("--%s %q: [%s] %s = %q: there is no such key", flagConfigFile, path, ownSection, key.Name(),
				key.Value())
		}
	}
	return nil
}
