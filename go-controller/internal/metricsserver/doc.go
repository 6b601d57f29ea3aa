// SPDX-License-Identifier: Apache-2.0

// Package metricsserver serves the metrics and profiles of a process over TLS to authorized clients. The API server
// reviews the bearer token of each request (ADR 14).
//
// Invariants:
//   - A request is served only if a TokenReview authenticates its token and a SubjectAccessReview allows its path. If
//     the API server does not respond in time, the status is 503.
//   - Requests that fail the check cost the API server a bounded number of reviews, per client and in total, whatever
//     tokens and paths they have. They do not lock out a client that was allowed before.
//   - Connections are limited in number and in time. Those of unauthorized clients keep no others from being served.
//   - Tokens are stored only as hashes, and are never logged.
package metricsserver
