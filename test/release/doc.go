// SPDX-License-Identifier: Apache-2.0

// Package release tests what a release consists of: images for several architectures, and the files of
// contrib/release.sh. It requires root and buildah, and builds the program once per architecture.
package release
