// SPDX-License-Identifier: Apache-2.0

// Package preview compares the decisions about a cluster before and after an edit of its objects: which Services keep,
// lose or change what, which shards move, and which BGP sessions and routes change. The decisions are those of package
// decide. It has no effects and no clock.
package preview
