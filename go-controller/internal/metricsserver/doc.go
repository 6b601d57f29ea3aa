// SPDX-License-Identifier: Apache-2.0

// Package metricsserver serves the metrics and profiles of a process to those who may read them: over TLS, with the
// bearer token of each request checked by the API server (ADR 14).
//
// Invariants:
//   - Nothing is served without a TokenReview that authenticates the token and a SubjectAccessReview that allows the
//     path. If the API server cannot be asked in time, the answer is 503.
//   - Requests that fail the check cost the API server a bounded number of reviews, per client and in total, whatever
//     tokens and paths they carry. They do not keep a client out that was allowed before.
//   - A token is kept only as its hash, and is never logged.
package metricsserver
