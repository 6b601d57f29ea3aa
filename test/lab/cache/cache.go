// SPDX-License-Identifier: Apache-2.0

// Package cache locates the directory in which builds and downloads are kept between runs.
package cache

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns $SLB_CACHE, or by default the directory ovnkube-slb in [os.UserCacheDir]. The directory need not exist.
// The scripts in contrib use the same path.
func Dir() (string, error) {
	if dir := os.Getenv("SLB_CACHE"); dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("cache: SLB_CACHE: %w", err)
		}
		return dir, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache: %w; set SLB_CACHE to a directory", err)
	}
	return filepath.Join(user, "ovnkube-slb"), nil
}
