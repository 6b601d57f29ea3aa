// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
)

// Categories of flags in the help.
const (
	categoryCluster = "Cluster:"
	categoryOutput  = "Output:"
)

// connection are the options that select the cluster and the user, with the names and the meaning that kubectl gives
// them.
type connection struct {
	kubeconfig, context, namespace string
	cluster, user, token           string
	// as and asGroups are impersonated (rest.ImpersonationConfig).
	as             string
	asGroups       values
	requestTimeout string
}

// values are those of a flag that may be repeated. Unlike those of cli.StringSliceFlag, they may contain commas, as the
// names of groups from LDAP do.
type values []string

// Set implements cli.Generic.
func (v *values) Set(value string) error {
	*v = append(*v, value)
	return nil
}

// String implements cli.Generic.
func (v *values) String() string { return strings.Join(*v, ", ") }

func (o *connection) flags() []cli.Flag {
	return append(o.clusterFlags(),
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Destination: &o.namespace, Category: categoryCluster,
			Usage: "`NAMESPACE` of Services; if empty, that of the context"})
}

// clusterFlags are the flags of commands that are not about Services.
func (o *connection) clusterFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Destination: &o.kubeconfig, Category: categoryCluster,
			Usage: "kubeconfig `FILE`; if empty, that of KUBECONFIG, or ~/.kube/config"},
		&cli.StringFlag{Name: "context", Destination: &o.context, Category: categoryCluster,
			Usage: "`NAME` of the context in the kubeconfig"},
		&cli.StringFlag{Name: "cluster", Destination: &o.cluster, Category: categoryCluster,
			Usage: "`NAME` of the cluster in the kubeconfig; if empty, that of the context"},
		&cli.StringFlag{Name: "user", Destination: &o.user, Category: categoryCluster,
			Usage: "`NAME` of the user in the kubeconfig; if empty, that of the context"},
		&cli.StringFlag{Name: "token", Destination: &o.token, Category: categoryCluster,
			Usage: "bearer `TOKEN` for the API server"},
		&cli.StringFlag{Name: "as", Destination: &o.as, Category: categoryCluster,
			Usage: "`USER` to impersonate: a user name, or system:serviceaccount:NAMESPACE:NAME"},
		&cli.GenericFlag{Name: "as-group", Value: &o.asGroups, Category: categoryCluster,
			Usage: "`GROUP` to impersonate, with --as; may be repeated"},
		&cli.StringFlag{Name: "request-timeout", Destination: &o.requestTimeout, Category: categoryCluster,
			Usage: "`DURATION` of a request at most, in seconds without a unit; 0 or empty for no limit"},
	}
}

// check returns the first problem with the options, with its flag and value.
func (o *connection) check() error {
	if len(o.asGroups) > 0 && o.as == "" {
		return fmt.Errorf("--as-group %q: needs --as", o.asGroups[0])
	}
	if o.requestTimeout == "" {
		return nil
	}
	if d, err := clientcmd.ParseTimeout(o.requestTimeout); err != nil || d < 0 {
		return fmt.Errorf("--request-timeout %q: want a number of seconds, or a duration as 30s or 2m", o.requestTimeout)
	}
	return nil
}

// clients are the clients of one cluster.
type clients struct {
	core kubernetes.Interface
	ours *kube.Clients
	// namespace is that of the flag or of the context.
	namespace string
}

// config returns the configuration of a client, and the namespace of the flag or of the context.
func (o *connection) config() (*rest.Config, string, error) {
	if err := o.check(); err != nil {
		return nil, "", err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.context, Timeout: o.requestTimeout,
		Context:  clientcmdapi.Context{Namespace: o.namespace, Cluster: o.cluster, AuthInfo: o.user},
		AuthInfo: clientcmdapi.AuthInfo{Token: o.token, Impersonate: o.as, ImpersonateGroups: o.asGroups}}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.UserAgent = "kubectl-slb/" + version
	config.QPS = -1 // about twenty requests for a command
	// Warnings of the API server are printed as kubectl prints them.
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read the namespace of the context: %w", err)
	}
	return config, namespace, nil
}

func (o *connection) connect(ctx context.Context) (*clients, error) {
	config, namespace, err := o.config()
	if err != nil {
		return nil, err
	}
	c := &clients{namespace: namespace}
	if c.core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	if c.ours, err = kube.NewClients(config); err == nil {
		err = c.ours.ReadFRR(config, metav1.NamespaceAll)
	}
	if err != nil || o.as == "" {
		return c, err
	}
	// All users may read the version. Without this request, lists that fail because the user must not impersonate would
	// be taken for lists that the impersonated user must not read.
	err = c.core.CoreV1().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("--as %q: %w", o.as, err)
	}
	return c, nil
}

// output is the format of the result.
type output struct {
	format string
	// formats are the accepted ones.
	formats []string
}

// Formats of results. The empty format is for readers.
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatWide = "wide"
)

// formatFlag is the flag for the format of the result.
type formatFlag struct {
	*cli.StringFlag
	formats []string
}

func (o *output) flags(formats ...string) []cli.Flag {
	o.formats = formats
	return []cli.Flag{&formatFlag{formats: formats, StringFlag: &cli.StringFlag{Name: "output", Aliases: []string{"o"},
		Destination: &o.format, Category: categoryOutput,
		Usage: "`FORMAT` of the output: " + strings.Join(formats, ", ") + "; if empty, for readers"}}}
}

// validate checks the format against the accepted ones.
func (o *output) validate() error {
	if o.format == "" || slices.Contains(o.formats, o.format) {
		return nil
	}
	return fmt.Errorf("--output %q: want one of %v", o.format, o.formats)
}

// withArgument returns the action of a command with one argument.
func withArgument(what string, validate func() error, run func(*cli.Context, string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := validate(); err != nil {
			return err
		}
		if c.NArg() != 1 || c.Args().First() == "" {
			return fmt.Errorf("%s: want one argument, %s, have %d", c.Command.Name, what, c.NArg())
		}
		return run(c, c.Args().First())
	}
}

// noArguments returns an error if a command has arguments.
func noArguments(c *cli.Context) error {
	if c.NArg() > 0 {
		return errors.New(c.Command.Name + ": unexpected argument " + fmt.Sprintf("%q", c.Args().First()))
	}
	return nil
}
